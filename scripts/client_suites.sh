#!/usr/bin/env bash
# Installs the suite $1 of a Kafka client, unless it is installed, and prints its folder. `make prove
# WHAT=compat` calls this. $BUCKETLOG_CACHE, as for scripts/install.sh, has the folders.
#
# scripts/client_suites/pins.txt lists the suites. Kinds of suites, and what the folder gets:
#
#   python        venv/: the client, and what its tests import
#   python-tests  the same, and source/: the client's source distribution, which has its tests
#   go-tests      suite.test: the tests of one Go package; source/: the module
#   go-program    program: a program of a Go module
#   go-checkout   program: a program of a Go module in a checkout
#   go-checkout-tests   suite.test and source/, as for go-tests; the module is in a checkout
#   checkout      nothing: the tests, and the client, are in a checkout
#   librdkafka    source/: librdkafka with its tests, built; a package for Node.js has the sources.
#                 venv/ and rapidjson/: a Python package that has the headers of RapidJSON
#
# All except checkouts come from package registries, and are pinned with a checksum. $CLIENT_CHECKOUTS
# is the folder of the checkouts. A checkout has the name of its suite, and must be at the pinned tag.
set -euo pipefail
cd "$(dirname "$0")/.."

name="$1"
cache="${BUCKETLOG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bucketlog}/client-suites"
requirements="scripts/client_suites/$name.txt"
pin="$(sed -n "s/^$name //p" scripts/client_suites/pins.txt)"
read -r kind source checksum package options <<<"$pin"
# a changed pin is another installation
folder="$cache/$name-$({ echo "$pin" && cat "$requirements" 2>/dev/null || true; } | cksum | cut -d' ' -f1)"

install_go-tests() {
    build_tests "$(download_module)"
}

install_go-program() {
    build_program "$(download_module)"
}

install_go-checkout() {
    build_program "$(pinned_checkout)"
}

install_go-checkout-tests() {
    build_tests "$(pinned_checkout)"
}

# Build the tests of the package in the module of the folder $1.
build_tests() {
    cp -r "$1" "$folder/source"
    chmod -R u+w "$folder/source"
    # -mod=mod may complete the Go version in go.mod; go.sum, which the pinned checksum covers, must not change
    # shellcheck disable=SC2086 # options are words
    nice -n 10 go -C "$folder/source" test -c -p 1 -mod=mod -trimpath $options -o "$folder/suite.test" "$package"
    cmp "$1/go.sum" "$folder/source/go.sum"
}

# Build the package in the module of the folder $1.
build_program() {
    CGO_ENABLED=0 nice -n 10 go -C "$1" build -p 1 -mod=readonly -buildvcs=false -trimpath \
        -o "$folder/program" "$package"
}

# Print the folder of the suite's checkout. Fail if the checkout is not at the pinned tag.
pinned_checkout() {
    local tree="${CLIENT_CHECKOUTS:?}/$name" tag="${source#*@}"
    [ "$(git -C "$tree" rev-parse HEAD)" = "$(git -C "$tree" rev-parse "$tag^{commit}")" ] ||
        fail "$tree is not at $tag: git -C $tree checkout $tag"
    echo "$tree"
}

# Download the pinned module, compare its checksum, and print its folder.
download_module() {
    local answer
    answer="$(cd / && go mod download -json "$source")"
    [ "$(go_field Sum <<<"$answer")" = "$checksum" ] || fail "the sum of $source is not the pinned one"
    go_field Dir <<<"$answer"
}

go_field() {
    sed -n "s/^\t\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p"
}

install_librdkafka() {
    local archive
    archive="$folder/$(cd "$folder" && npm pack --silent "$source")"
    sha256sum --quiet --check <<<"$checksum  $archive"
    tar -xzf "$archive" -C "$folder" package/deps/librdkafka
    mv "$folder/package/deps/librdkafka" "$folder/source"
    rm -r "$archive" "$folder/package"
    python3 -m venv "$folder/venv"
    of_pip install --requirement scripts/build_tools.txt
    download_source "$requirements" "$folder/rapidjson"
    (cd "$folder/source" && CPPFLAGS="-I$folder/rapidjson/rapidjson/include" \
        ./configure --disable-curl --disable-gssapi)
    grep -q '^WITH_RAPIDJSON=\sy$' "$folder/source/Makefile.config"
    nice -n 10 make -C "$folder/source" libs
    nice -n 10 make -C "$folder/source/tests" test-runner
}

install_checkout() {
    :
}

install_python() {
    python3 -m venv "$folder/venv"
    of_pip install --requirement scripts/build_tools.txt
    of_pip install --no-build-isolation --requirement "$requirements"
}

install_python-tests() {
    install_python
    download_source <(only_the_client) "$folder/source"
}

# The source distribution of the package in the list $1 becomes the folder $2.
download_source() {
    of_pip download --no-build-isolation --no-binary :all: --dest "$folder/sdist" --requirement "$1"
    mkdir "$2"
    tar -xzf "$folder"/sdist/*.tar.gz --strip-components=1 -C "$2"
    rm -r "$folder/sdist"
}

of_pip() {
    "$folder/venv/bin/python" -m pip "$1" --disable-pip-version-check --require-hashes --no-deps "${@:2}"
}

only_the_client() {
    sed -n "/^${source%@*}==/,/[^\\\\]\$/p" "$requirements"
}

fail() {
    echo "client_suites: $1" >&2
    exit 1
}

if [ -z "$pin" ]; then
    fail "scripts/client_suites/pins.txt has no suite '$name'"
fi
mkdir -p "$cache"
exec 9>"$cache/$name.lock" # one installation at a time
flock 9
if ! [ -e "$folder/.installed" ]; then
    echo "client_suites: $name, with the dependencies of its tests (may take minutes)" >&2
    rm -rf "$folder"
    mkdir -p "$folder"
    log="$folder/install.log"
    ("install_$kind") >"$log" 2>&1 9>&- & # not within the condition, where `set -e` has no effect
    if ! wait "$!"; then
        tail -n 20 "$log" >&2
        fail "the installation of $name failed"
    fi
    touch "$folder/.installed"
fi
echo "$folder"
