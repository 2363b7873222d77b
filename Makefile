# The one door to the project. `make` alone prints the list below.
SHELL := /bin/bash
.DEFAULT_GOAL := help

BIN := .venv/bin
STORE ?= file
# Tests start thousands of processes: without cached bytecode, each compiles the sources again.
unexport PYTHONDONTWRITEBYTECODE
FAST_TESTS := tests/architecture tests/unit tests/contract tests/property
ALL_TESTS = $(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

.PHONY: help demo test test-all lint check format up down bench sim chaos soak prove docs package constraints sbom audit clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/.installed: pyproject.toml constraints.txt scripts/build_tools.txt scripts/environment.sh
	@scripts/environment.sh

demo: .venv/.installed ## a year of real flights: produced, consumed, replayed by Spark, compared  [STORE=minio|localstack]
ifeq ($(STORE),file)
	@$(BIN)/bucketlog demo $(ARGS)
else
	@scripts/install.sh $(STORE)
	@$(BIN)/python -m localstack.run $(STORE) -- $(BIN)/bucketlog demo --bucket s3://bucketlog $(ARGS)
endif

test: .venv/.installed ## the tests of a change, without the files marked `long`  [ARGS='-k name']
	@scripts/install.sh --background minio localstack spark-jars schema-registry
	@scripts/install.sh kcat redis-tls kafka-tools
	@$(ALL_TESTS) -m "not long" $(ARGS)

test-all: .venv/.installed ## all tests: about an hour; ends with the real servers that took part  [ARGS='-k name']
	@scripts/install.sh --background minio localstack spark-jars schema-registry keycloak terraform tflint helm linters schemas prometheus supply-tools go-client
	@scripts/install.sh kcat chromium redis-tls kafka-tools
	@$(ALL_TESTS) $(ARGS)

lint: .venv/.installed ## format, lint, types and layers
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

check: lint ## the same, and the fast tests: about a minute
	@$(BIN)/python -m pytest -q -n 2 -m 'not long' -k 'not (moto or minio or localstack)' $(FAST_TESTS)

format: .venv/.installed ## rewrite the sources as `make check` wants them
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

up: .venv/.installed ## a deployment in the background: a store, a Valkey, two brokers  [STORE=file|minio|localstack] [ARGS='--port 0']
ifneq ($(STORE),file)
	@scripts/install.sh $(STORE)
endif
	@$(BIN)/python -m localstack.up $(STORE) $(ARGS)

down: .venv/.installed ## end it; its data stays in .bucketlog
	@$(BIN)/python -m localstack.up --down $(ARGS)

bench: .venv/.installed ## produce and fetch benchmarks on this machine, JSON on stdout
	@$(BIN)/python -m benchmarks.produce $(ARGS)
	@$(BIN)/python -m benchmarks.fetch $(ARGS)

sim: .venv/.installed ## the deterministic simulation of a cluster under faults  [SEED=7] [SEEDS=1000] [ARGS=--everything]
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

chaos: .venv/.installed ## a plan of faults in brokers, stores and networks under real clients  [MINUTES=10] [SEED=1] [ARGS='--folder chaos']
	@scripts/install.sh minio kafka-tools
	@$(BIN)/python -m tests.scenarios.chaos_run $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(ARGS)

soak: .venv/.installed ## hours of churn, to find figures that grow  [HOURS=1] [ARGS='--folder soak']
	@$(BIN)/python -m tests.scenarios.soak $(if $(HOURS),--hours $(HOURS)) $(ARGS)

prove: .venv/.installed ## the project's claims at full size, or one of them  [WHAT=crash] [ARGS=--short]
	@scripts/install.sh --background minio localstack kafka-tools spark-jars schema-registry keycloak terraform tflint helm linters schemas prometheus go-client
	@scripts/install.sh kcat chromium
	@$(BIN)/python -m tests.proofs $(WHAT) $(ARGS)

docs: .venv/.installed ## build/site: the documentation site; warnings are errors  [ARGS=--clean]
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build --strict $(ARGS)

package: .venv/.installed ## dist/bucketlog-spark.zip, for `spark-submit --py-files`
	@$(BIN)/python scripts/spark_package.py $(ARGS)

constraints: ## write constraints.txt and the other lists of packages with their hashes  [ARGS=--upgrade]
	@scripts/constraints.sh $(ARGS)

sbom: ## dist/bucketlog.cdx.json: the image's bill of materials, as CycloneDX
	@scripts/install.sh supply-tools
	@scripts/sbom.sh

audit: ## known vulnerabilities of pinned packages, except scripts/audit_allowed.toml; asks an advisory service
	@scripts/install.sh supply-tools
	@"$$(scripts/install.sh --where supply-tools)" scripts/audit.py $(ARGS)

clean: ## remove .venv and everything that is built
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build \
	  spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
