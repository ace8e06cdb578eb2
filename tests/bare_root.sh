#!/bin/sh
# SPDX-License-Identifier: MIT
#
# In a fresh clone on a bare Debian: `./dev demo` then `./dev test`, and, in a
# second root, `./dev test` alone. As root, where debootstrap is.
#
#   tests/bare_root.sh [SUITE...]     (default: bookworm trixie)
#
# The roots take packages from where this machine takes them.

set -eu
cd "$(dirname "$0")/.."

say() { printf 'bare_root: %s\n' "$*" >&2; }
[ "$(id -u)" = 0 ] || { say "needs root"; exit 1; }
command -v debootstrap >/dev/null || apt-get -qq install -y debootstrap >/dev/null

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

# shellcheck disable=SC2016 # apt's own variables
mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 ~ /\/debian\/$/ { print $1; exit }')

# bare SUITE: a minimal system with python3 in $work/SUITE.tar
bare() {
    say "debootstrap $1"
    debootstrap --variant=minbase --include=python3 "$1" "$work/$1" "$mirror" >"$work/$1.log" 2>&1 || {
        tail -5 "$work/$1.log" >&2
        return 1
    }
    # How this machine reaches its package sources.
    cp -L /etc/resolv.conf /etc/hosts "$work/$1/etc/"
    for file in /etc/pip.conf /etc/apt/apt.conf.d/*proxy*; do
        [ ! -f "$file" ] || { mkdir -p "$work/$1$(dirname "$file")" && cp -L "$file" "$work/$1$file"; }
    done
    # Not at its usual place, where installing ca-certificates would overwrite it.
    [ ! -f "${PIP_CERT:-}" ] || cp -L "$PIP_CERT" "$work/$1/root/certificates.pem"
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
            ${PIP_CERT:+PIP_CERT=/root/certificates.pem} sh -c "cd /clone && ./dev $verb"
    done
    umount "$root/proc"
    mounted=
    rm -rf --one-file-system "$root"
}

[ $# -gt 0 ] || set -- bookworm trixie
for suite in "$@"; do
    bare "$suite"
    in_root "$suite" demo test
    in_root "$suite" test
    rm -f "$work/$suite.tar"
done
say "all passed: $*"
