#!/bin/sh
# SPDX-License-Identifier: MIT
#
# libdeflate and ISA-L for release wheels: pinned, built from source, put into
# /usr (below DESTDIR where that is set) with their licence texts. cibuildwheel
# runs it once in each container (pyproject.toml), before it builds wheels.
#
# The archives are the tags' own; WHEEL_SOURCES=FOLDER takes them from there.
# What differs from the sums below ends it.

set -eu

LIBDEFLATE=1.23
LIBDEFLATE_SUM=1ab18349b9fb0ce8a0ca4116bded725be7dcbfa709e19f6f983d99df1fb8b25f
ISAL=2.31.1
ISAL_SUM=e1d5573a4019738243b568ab1e1422e6ab7557c5cae33cc8686944d327ad6bb4

if command -v apk >/dev/null; then
    apk add build-base cmake autoconf automake libtool nasm curl zlib-dev
elif command -v dnf >/dev/null; then
    dnf install -y gcc make cmake autoconf automake libtool nasm curl zlib-devel
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cpus=$(nproc)

unpack() { # unpack NAME URL SHA256: into $work/NAME
    if [ -n "${WHEEL_SOURCES:-}" ]; then
        cp "$WHEEL_SOURCES/$1.tar.gz" "$work/$1.tar.gz"
    else
        curl -fsSL --retry 3 -o "$work/$1.tar.gz" "$2"
    fi
    echo "$3  $work/$1.tar.gz" | sha256sum -c - >&2
    mkdir "$work/$1"
    tar -C "$work/$1" --strip-components=1 -xzf "$work/$1.tar.gz"
}

licence() { # licence NAME FILE: where tools/wheel_licences.py looks
    mkdir -p "${DESTDIR:-}/usr/share/licenses/$1"
    cp "$2" "${DESTDIR:-}/usr/share/licenses/$1/"
}

# The folder that the compiler and pkg-config look into without being told.
libdir=/usr/lib
[ ! -d /usr/lib64 ] || libdir=/usr/lib64
[ ! -d "/usr/lib/$(uname -m)-linux-gnu" ] || libdir=/usr/lib/$(uname -m)-linux-gnu

unpack libdeflate "https://github.com/ebiggers/libdeflate/archive/refs/tags/v$LIBDEFLATE.tar.gz" "$LIBDEFLATE_SUM"
cmake -S "$work/libdeflate" -B "$work/libdeflate/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
    -DCMAKE_INSTALL_LIBDIR="$libdir" -DLIBDEFLATE_BUILD_GZIP=OFF -DLIBDEFLATE_BUILD_STATIC_LIB=OFF
cmake --build "$work/libdeflate/build" --parallel "$cpus"
cmake --install "$work/libdeflate/build"
licence libdeflate "$work/libdeflate/COPYING"

unpack isa-l "https://github.com/intel/isa-l/archive/refs/tags/v$ISAL.tar.gz" "$ISAL_SUM"
(
    cd "$work/isa-l"
    ./autogen.sh
    ./configure --prefix=/usr --libdir="$libdir" --disable-static
    make -j "$cpus"
    make install
)
licence isa-l "$work/isa-l/LICENSE"
