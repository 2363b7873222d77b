#!/usr/bin/env bash
# Installs the programs that tests need and that are not Python packages: scripts/install.sh kcat
#
# Uses apt where it may. Elsewhere it says what to install and goes on (the tests that need the
# program are then skipped, with the same words), except in CI (CI=true), where it fails.
set -euo pipefail

refuse() {
    echo "install: $1 is missing: $2" >&2
    [ "${CI:-}" != true ] || exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

may_use_apt() {
    command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

from_apt() {
    local program="$1" package="$2" log
    command -v "$program" >/dev/null && return
    if ! may_use_apt; then
        refuse "$program" "install your system's package '$package'"
        return
    fi
    echo "install: $package, from the system's packages"
    log="$(mktemp)"
    export DEBIAN_FRONTEND=noninteractive
    if ! as_root apt-get install -y "$package" >"$log" 2>&1 &&
        ! { as_root apt-get update && as_root apt-get install -y "$package"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        refuse "$program" "apt-get install $package failed"
    fi
    rm -f "$log"
}

for name in "$@"; do
    case "$name" in
        kcat) from_apt kcat kcat ;;
        *)
            echo "install: no recipe for '$name'" >&2
            exit 2
            ;;
    esac
done
