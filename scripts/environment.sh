#!/usr/bin/env bash
# Creates .venv and installs bucketlog with everything its tests need, at the versions that
# constraints.txt pins. Run by `make`, and only when one of the two files has changed.
#
# Settings: PYTHON (the interpreter to build .venv with), BUCKETLOG_CACHE (pip's downloads).
set -euo pipefail
cd "$(dirname "$0")/.."

cache="${BUCKETLOG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bucketlog}"
oldest="3.11"

is_suitable() {
    command -v "$1" >/dev/null 2>&1 &&
        "$1" -c "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))" >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if is_suitable "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    cat >&2 <<TEXT
bucketlog needs Python $oldest or newer with the venv module, and found none among
${PYTHON:-} python3 python3.13 python3.12 python3.11.
  Debian, Ubuntu:  apt-get install python3 python3-venv
  elsewhere:       install Python $oldest+ and run  make PYTHON=/path/to/python3 ...
TEXT
    return 1
}

if [ ! -x .venv/bin/python ]; then
    python="$(find_python)"
    echo "environment: creating .venv with $("$python" --version)"
    "$python" -m venv .venv
fi

echo "environment: installing the packages of pyproject.toml at the versions of constraints.txt"
echo "environment: (a fresh machine downloads about 800 MB, Spark is most of it)"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
if ! .venv/bin/python -m pip install --quiet --disable-pip-version-check \
    --cache-dir "$cache/pip" --constraint constraints.txt --editable '.[dev]' >"$log" 2>&1; then
    cat "$log" >&2
    echo "environment: the installation failed; the lines above say why" >&2
    exit 1
fi
touch .venv/.installed
echo "environment: ready, $(.venv/bin/python --version)"
