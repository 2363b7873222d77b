#!/usr/bin/env bash
# Writes dist/bucketlog.cdx.json, the software bill of materials of the image as CycloneDX: bucketlog
# and the packages of infra/container/requirements.txt, with their hashes. It contacts no service, and the
# same revision gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

tools="$(dirname "$(scripts/install.sh --where supply-tools)")"
mkdir -p dist
PYTHONWARNINGS=ignore "$tools/cyclonedx-py" requirements --pyproject pyproject.toml --mc-type application \
    --output-reproducible --validate --output-format JSON --output-file dist/bucketlog.cdx.json \
    infra/container/requirements.txt
echo "sbom: dist/bucketlog.cdx.json"
