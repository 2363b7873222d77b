#!/usr/bin/env bash
# Creates .venv and installs bucketlog with everything its tests need, at the versions and with the
# hashes of constraints.txt. Run by `make`, and only when pyproject.toml or constraints.txt changed.
# Nothing is fetched without a hash: builds use what scripts/build_tools.txt pins, too.
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
echo "environment: (a fresh machine downloads about 800 MB; pip prints nothing for some minutes)"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
pip() {
    .venv/bin/python -m pip --disable-pip-version-check "$@" >>"$log" 2>&1
}
if ! { pip install --quiet --cache-dir "$cache/pip" --require-hashes --no-deps \
    --requirement scripts/build_tools.txt &&
    pip install --quiet --cache-dir "$cache/pip" --require-hashes --no-deps --no-build-isolation \
        --requirement constraints.txt &&
    pip install --quiet --no-deps --no-build-isolation --editable . &&
    pip check; }; then
    cat "$log" >&2
    echo "environment: the installation failed; the lines above say why (after a change of" \
        "pyproject.toml, run: scripts/constraints.sh)" >&2
    exit 1
fi
touch .venv/.installed
echo "environment: ready, $(.venv/bin/python --version)"
