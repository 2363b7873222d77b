#!/usr/bin/env bash
# Writes the lists of Python packages, each with the version and the hashes of all its files. Run by
# `make constraints`. A version that is listed and still fits stays; `--upgrade` takes the newest.
#
#   constraints.txt                   everything that .venv holds
#   infra/container/requirements.txt  what the image holds
#   scripts/build_tools.txt           what builds bucketlog, and packages that come as sources alone
#   scripts/supply_tools.txt          uv, pip-audit and cyclonedx-py
#   scripts/client_suites/*.txt       Python clients whose tests are run, with the packages that the tests need
#   localstack/requirements.txt       LocalStack, from requirements.in
#   tests/infra/linters.txt, schemas.txt: new hashes for the versions in the list
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install.sh supply-tools
uv="$(dirname "$(scripts/install.sh --where supply-tools)")/uv"
oldest="3.11"

# Target, comment of one line, the rest goes to `uv pip compile`.
compile() {
    local target="$1" comment="$2" made
    shift 2
    made="$(mktemp)"
    grep -v '^#' "$target" >"$made" 2>/dev/null || true # these versions stay
    "$uv" pip compile --quiet --no-header --no-annotate --generate-hashes --output-file "$made" "$@"
    { printf '# %s\n' "$comment" "Written by \`make constraints\`." && cat "$made"; } >"$target.new"
    rm -f "$made"
    mv "$target.new" "$target"
    echo "constraints: $target, $(grep -c == "$target") packages"
}

compile constraints.txt "The versions this revision was tested with, and the hashes of their files." \
    --universal --python-version "$oldest" --extra dev pyproject.toml "$@"
compile infra/container/requirements.txt "What the image holds besides bucketlog itself." \
    --universal --python-version "$oldest" --constraint constraints.txt \
    --extra broker --extra cli --extra console --extra replay pyproject.toml
compile scripts/build_tools.txt "What builds bucketlog, and packages that come as sources alone." \
    --universal --python-version "$oldest" --constraint constraints.txt - <<<$'editables\nhatchling\nsetuptools'
compile scripts/supply_tools.txt "uv, pip-audit and cyclonedx-py; scripts/install.sh supply-tools." \
    --universal --python-version "$oldest" "$@" - <<<$'uv\npip-audit\ncyclonedx-bom'
compile localstack/requirements.txt "LocalStack, the last version that needs no token, in a venv of its own." \
    --python-version 3.13 "$@" localstack/requirements.in
# the clients have the versions of their tests: tests/scenarios/known_suites.py
for needs in scripts/client_suites/*.in; do
    name="$(basename "$needs" .in)"
    compile "scripts/client_suites/$name.txt" "What the suite $name runs on; scripts/client_suites.sh $name." \
        --universal --python-version "$oldest" "$@" "$needs"
done
# chosen by hand: checkov's declared requirements differ from the versions that it works with
for name in linters schemas; do
    compile "tests/infra/$name.txt" "$(sed -n '1s/^# //p' "tests/infra/$name.txt")" \
        --python-version 3.13 --no-deps - <<<"$(grep -o '^[A-Za-z0-9._-]*==[^ ;]*' "tests/infra/$name.txt")"
done
