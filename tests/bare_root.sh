#!/bin/sh
# SPDX-License-Identifier: MIT
#
# In a fresh clone on a bare Debian: `./dev demo` then `./dev test`, and, in a
# second root, `./dev test` alone. As root, where debootstrap is.
#
#   tests/bare_root.sh [SUITE...]     (default: bookworm trixie)
#   tests/bare_root.sh --wheel [SUITE...]   dist/*.whl instead, without a compiler
#
# The roots take packages from where this machine takes them. Where none can be
# made (no root, no debootstrap, no mounts) it ends with 77 and says why.

set -eu
cd "$(dirname "$0")/.."

say() { printf 'bare_root: %s\n' "$*" >&2; }
cannot() {
    say "NOT TRIED, as no bare root can be made here: $*"
    exit 77
}
[ "$(id -u)" = 0 ] || cannot "that takes root"
command -v debootstrap >/dev/null ||
    { apt-get -qq update && apt-get -qq install -y debootstrap >/dev/null; } ||
    cannot "debootstrap is not there and can't be installed"

work=$(mktemp -d)
mounted=
clean() {
    for point in $mounted; do
        umount -l "$point" || :
    done
    rm -rf --one-file-system "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM
mkdir "$work/proc"
mount -t proc proc "$work/proc" || cannot "mount is refused"
umount "$work/proc"

# shellcheck disable=SC2016 # apt's own variables
mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 ~ /\/debian\/$/ { print $1; exit }')

# bare SUITE: a minimal system with python3 in $work/SUITE.tar
bare() {
    say "debootstrap $1"
    debootstrap --variant=minbase --include=python3 "$1" "$work/$1" "$mirror" >"$work/$1.log" 2>&1 || {
        tail -5 "$work/$1.log" >&2
        cannot "debootstrap failed"
    }
    # How this machine reaches its package sources.
    cp -L /etc/resolv.conf /etc/hosts "$work/$1/etc/"
    for file in /etc/pip.conf /etc/apt/apt.conf.d/*proxy*; do
        [ ! -f "$file" ] || { mkdir -p "$work/$1$(dirname "$file")" && cp -L "$file" "$work/$1$file"; }
    done
    # Not at its usual place, where installing ca-certificates would overwrite it.
    [ ! -f "${PIP_CERT:-}" ] || cp -L "$PIP_CERT" "$work/$1/certificates.pem"
    tar -C "$work" -cf "$work/$1.tar" "$1"
    rm -rf --one-file-system "${work:?}/$1"
}

# in_root SUITE VERB...: a new root from the tarball, a fresh clone, ./dev VERB each.
in_root() {
    suite=$1
    shift
    root=$work/root-$suite
    mkdir "$root"
    tar -C "$root" --strip-components=1 -xf "$work/$suite.tar"
    mount -t proc proc "$root/proc"
    mounted="$root/proc $mounted"
    git clone -q . "$root/clone"
    for verb in "$@"; do
        say "$suite: ./dev $verb"
        chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
            ${PIP_CERT:+PIP_CERT=/certificates.pem} sh -c "cd /clone && ./dev $verb"
    done
    umount "$root/proc"
    mounted=
    rm -rf --one-file-system "$root"
}

# try_wheel SUITE: the wheels of dist that fit, in a root without a compiler.
try_wheel() {
    root=$work/root-$1
    mkdir "$root"
    tar -C "$root" --strip-components=1 -xf "$work/$1.tar"
    mount -t proc proc "$root/proc"
    mounted="$root/proc $mounted"
    mkdir "$root/wheels"
    cp dist/*.whl "$root/wheels"
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        sh -ec 'apt-get -qq update && apt-get -qq install -y --no-install-recommends python3-venv >/dev/null
            ! command -v cc
            python3 -m venv /venv
            /venv/bin/pip install -q --no-index --find-links /wheels pyio_chunked
            cd / && /venv/bin/pyio-chunked demo'
    umount "$root/proc"
    mounted=
    rm -rf --one-file-system "$root"
}

wheels=
[ "${1:-}" != --wheel ] || { wheels=yes; shift; }
if [ $# -eq 0 ]; then
    # A wheel fits the Python that built it, which is this suite's.
    # shellcheck disable=SC1091
    if [ -n "$wheels" ]; then set -- "$(. /etc/os-release && echo "$VERSION_CODENAME")"; else set -- bookworm trixie; fi
fi
for suite in "$@"; do
    bare "$suite"
    if [ -n "$wheels" ]; then
        try_wheel "$suite"
    else
        in_root "$suite" demo test
        in_root "$suite" test
    fi
    rm -f "$work/$suite.tar"
done
say "all passed: $*"
