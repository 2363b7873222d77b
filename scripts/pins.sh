# shellcheck shell=bash disable=SC2034  # scripts/install.sh uses the variables
# Versions, checksums and lists of the programs that scripts/install.sh installs, and time limits.

minio_version="v0.0.0-20260212201848-7aac2a2c5b7c"
minio_sum="h1:/qdoYujxF5MBLDMVLeiYJ/7fBa1HikX39Dvzb9Ji8pA="
localstack_needs="localstack/requirements.txt"
kafka_tools_pom="scripts/kafka_tools.pom.xml"
kafka_tools_sha256="ffb93e13bbdc080ae6d82f357de051d0379bd451da56bac8a8d3973e5579518c"
spark_jars_pom="scripts/spark_jars.pom.xml"
spark_jars_sha256="649648c607bf1bceced5534f650a195e3ceb65e756b8007348f28fd3f577a484"
terraform_least="1.11"
tofu_version="v1.12.6"
tofu_sum="h1:0VT4P8pMmGcCUnQ9DJrJ+Qg2d35Vzm4FFd/9+H7oF98="
tflint_version="v0.64.0"
tflint_sum="h1:v0KwryBjBeo79uqFrYQOllZk3l/nQvH/e4SZW45jhA8="
helm_version="v3.22.0"
helm_sum="h1:n1if5iQgHYsujPAcO5oonH/KiSNUmqmUF0iGVjSF3AU="
linters_need="tests/infra/linters.txt"
schemas_need="tests/infra/schemas.txt"
schema_registry_pom="scripts/schema_registry.pom.xml"
schema_registry_sha256="53f28d290cc8aa56db5677708d1f3e1f226406ab6d04f7e6af9194cf9f39400d"
keycloak_pom="scripts/keycloak.pom.xml"
keycloak_sha256="9d5e64d238a1573ee84d50892a8db1fa1cff2a90c0cfed261c35d0a74ddb77c2"
maven_plugin="org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
supply_tools_need="scripts/supply_tools.txt"
build_tools_need="scripts/build_tools.txt"
go_client="tests/servers/go_client"
download_s=1800 # time limit of a download, and of unpacking it on a busy machine
build_s=2700   # time limit of a build, which may run beside all tests
