# Every task of this repository. Run `make` for a list.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin

# Tests start hundreds of processes; without bytecode on disk, each compiles every module it imports.
unexport PYTHONDONTWRITEBYTECODE

# Installs a missing program with the system's package manager, if this user is allowed to.
define need
@command -v $(1) >/dev/null || { \
  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    echo "installing $(2)"; \
    apt-get update -qq >/dev/null; \
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(2) >/dev/null; \
  else \
    echo "$(1) is missing. Install the package $(2), then try again" >&2; \
    exit 1; \
  fi; }
endef

##@ Use
.PHONY: demo
demo: $(VENV)/.installed java ## Run a real Kafka cluster with faults and write its report to .demo/report.html
	@exec $(BIN)/python -m demo

##@ Develop
.PHONY: setup
setup: $(VENV)/.installed java jars s3 ## Install the virtual environment, Java 17, jars of Kafka and Delta, and an S3 server

# Each process imports everything first, so few processes are faster; tests of a file share fixtures.
UNIT := $(BIN)/pytest tests/unit --numprocesses logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.PHONY: test
test: $(VENV)/.installed java browser promtool ## Run lint, unit tests, and tests with real Kafka, Spark and a browser
	@$(MAKE) --no-print-directory -j4 s3 lint archives
	@$(UNIT)
	@exec $(BIN)/python -m tests.lanes

.PHONY: archives
archives: jars
	@$(BIN)/python -m tests.class_archives

.PHONY: test-fast
test-fast: $(VENV)/.installed java ## Run the fast unit tests, about 40 s
	@$(UNIT) -m "not slow"

.PHONY: test-nightly
test-nightly: test-connect test-cluster test-s3-spark test-truth test-truth-kafka test-variations ## Run the six slow suites below

.PHONY: test-connect
test-connect: setup ## Run the rollup's tests and every notebook over Spark Connect
	@$(BIN)/pytest --spark connect -m spark tests/integration/test_rollup*.py tests/integration/test_limits.py \
	  tests/integration/test_counters_made_late.py
	@$(BIN)/pytest tests/everywhere/connect.py tests/everywhere/connect_live.py tests/everywhere/connect_faults.py
	@$(BIN)/pytest -m nightly tests/everywhere/test_notebooks.py tests/integration/test_views.py \
	  tests/integration/test_catalog_takeover.py
	@$(BIN)/pytest tests/integration/test_demo.py -k notebooks

.PHONY: test-cluster
test-cluster: setup ## Roll up a larger lake on a Spark cluster with faults; requires the package index
	@$(BIN)/pytest tests/everywhere/nightly_cluster.py
	@$(BIN)/pytest tests/everywhere/nightly_submit.py tests/everywhere/nightly_faults.py

.PHONY: test-s3-spark
test-s3-spark: setup ## Roll up a lake on a real S3 server with Spark; downloads 12 MB
	@$(BIN)/pytest tests/everywhere/s3_by_spark.py

.PHONY: test-truth
test-truth: setup ## Run seven schedules of make bench-truth
	@$(BIN)/pytest tests/oracle/nightly_truth.py

.PHONY: test-truth-kafka
test-truth-kafka: setup promtool ## Test misleading MBeans, plugins and rare settings on real brokers, 15 minutes
	@$(BIN)/pytest tests/everywhere/truth_on_kafka.py tests/everywhere/optional_objectives_on_kafka.py \
	  tests/everywhere/own_metrics_on_kafka.py
	@$(BIN)/pytest -m "nightly and kafka and not spark and not versions" tests/integration
	@$(BIN)/pytest tests/integration/test_sources.py -k "without_the_listener or stopped_broker"

.PHONY: test-variations
test-variations: setup browser ## Test more faults and inputs than make test, ten minutes
	@$(BIN)/pytest -m "nightly and not kafka and not spark" tests/chaos tests/integration

.PHONY: test-edges
test-edges: setup ## Run all tests of ordinary faults that a report must not hide
	@exec $(BIN)/python -m tests.edges

.PHONY: test-hostile
test-hostile: setup ## Test hostile values in every input; HOSTILE="--only PLACE"
	@exec $(BIN)/python -m tests.hostile $(HOSTILE)

.PHONY: test-extending
test-extending: setup ## Count changed files per extension, and test a copy; PYTEST="-n 0"
	@exec $(BIN)/python -m tests.extending $(PYTEST)

.PHONY: test-report
test-report: setup browser ## Compare all report channels with JSON on five lakes; REPORT=--without-demo
	@exec $(BIN)/python -m tests.report $(REPORT)

.PHONY: test-demo-truth
test-demo-truth: setup ## Compare the demo's report with counts of its clients, plugin and log; BENCH=--busy
	@exec $(BIN)/python -m tests.demo_truth $(BENCH)

.PHONY: test-versions
test-versions: setup ## Test brokers of eight Kafka releases over JMX and an exporter, nine minutes
	@$(BIN)/pytest -m versions tests/integration
	@exec $(BIN)/python -m tests.versions

.PHONY: test-seeds
test-seeds: setup ## Test each item of the five KIPs and compare figures with known truth on real brokers; BENCH="--only NAME"
	@exec $(BIN)/python -m tests.seeds $(BENCH)

.PHONY: test-hands
test-hands: setup ## Measure installation, documentation, packages, notebooks and commands of a newcomer; HANDS="--only docs"
	@exec $(BIN)/python -m tests.hands $(HANDS)

.PHONY: test-deploy
test-deploy: setup ## Test bundle, packages, units, Ansible and Kubernetes on a real systemd; requires the package index
	$(call need,qemu-aarch64-static,qemu-user-static)
	$(call need,rpm,rpm)
	@$(BIN)/pytest tests/deploy

.PHONY: test-upgrade
test-upgrade: setup ## Test upgrades of spool, bronze and gold from older versions (b88afb5, 69725c44, 6dfc036f), five minutes; requires the package index
	@$(BIN)/pytest tests/packaging/upgrade.py

.PHONY: test-newest
test-newest: setup ## Run unit tests with the newest allowed dependencies, four minutes; requires the package index
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python .cache/newest
	@$(BIN)/uv pip install --quiet --python .cache/newest/bin/python --upgrade -e '.[dev]'
	@comm -13 <(grep -oE '^[a-z0-9._-]+==[^ ]+' requirements.lock | sort) \
	  <($(BIN)/uv pip freeze --quiet --python .cache/newest/bin/python | grep == | sort) | sed 's/^/not as locked: /'
	@.cache/newest/bin/pytest tests/unit -m "not slow" --numprocesses logical --maxprocesses 4 --dist loadfile

.PHONY: test-databricks
test-databricks: setup ## Test Databricks files without a workspace; requires the package index
	@exec $(BIN)/python -m tests.databricks

.PHONY: test-packaging
test-packaging: $(VENV)/.installed promtool ## Test the packages, each extra in a clean environment; requires the package index
	@$(BIN)/pytest tests/packaging/builds.py tests/packaging/extras.py tests/packaging/plugin.py \
	  tests/packaging/promtool.py tests/packaging/burn_rules.py tests/packaging/sbom.py tests/packaging/ci.py \
	  tests/packaging/uvx.py tests/docs/duckdb_extension.py tests/packaging/release.py tests/packaging/workflows.py

.PHONY: lint
lint: $(VENV)/.installed ## Run ruff, mypy --strict, import rules and the plain-English check, and search for merge markers
	@! grep -rnE '^(<<<<<<<|>>>>>>>) ' --exclude-dir='.[a-z]*' .
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.plain_english

.PHONY: format
format: $(VENV)/.installed ## Format and fix the code with ruff
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

.PHONY: docs
docs: $(VENV)/.installed ## Build the documentation site in .docs; wrong links are errors
	@$(BIN)/python -m mkdocs build --strict
	@echo "Open .docs/index.html. For search, run $(BIN)/python -m http.server -d .docs"

.PHONY: pictures
pictures: $(VENV)/.installed browser ## Update the pictures of README.md and docs from the sample's report, two minutes
	$(call need,pngquant,pngquant)
	@$(BIN)/python -m bench.pictures

.PHONY: definitions
definitions: $(VENV)/.installed ## Update metric definitions and JSON Schemas after a change of the catalogue, settings or version
	@$(BIN)/python -m docs.tools.definitions
	@$(BIN)/python -m docs.tools.schemas

# Versions of the lock for the Python of Databricks, without hashes because the wheel has none.
ON_DATABRICKS := $(BIN)/uv pip compile --constraint requirements.lock --universal --python-version 3.12 \
  --no-header --no-annotate --no-emit-index-url --quiet -o deploy/databricks/

LOCKED := --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --quiet

.PHONY: lock
lock: $(VENV)/.installed ## Update requirements.lock from pyproject.toml, with hashes
	@$(BIN)/uv pip compile pyproject.toml --all-extras $(LOCKED) -o requirements.lock
	@$(BIN)/uv pip compile deploy/tools.txt $(LOCKED) --no-annotate -o deploy/tools.lock
	@$(BIN)/uv pip compile deploy/audit.txt $(LOCKED) --no-annotate -o deploy/audit.lock
	@echo click duckdb pyyaml rich | tr ' ' '\n' | $(ON_DATABRICKS)rollup.txt -
	@$(ON_DATABRICKS)report.txt --extra databricks pyproject.toml

# BENCH="--against COMMIT" of every benchmark runs this tree and that commit in turn (bench/against.py).
.PHONY: bench-scrape
bench-scrape: setup ## Measure the scrape cost of a broker against other tools, 35 minutes, idle machine
	@$(BIN)/python -m bench.scrape $(BENCH)

.PHONY: bench-fleet
bench-fleet: setup ## Measure commit delays of 1 to 600 agents on one S3 lake, 30 minutes, idle machine
	@$(BIN)/python -m bench.fleet $(BENCH)

.PHONY: bench-maintenance
bench-maintenance: setup ## Measure the cost of many small files for agents and maintenance, five minutes
	@$(BIN)/python -m bench.maintenance $(BENCH)

.PHONY: bench-delivery
bench-delivery: setup ## Measure delivery with a thousand kills and every other fault, ten minutes
	@$(BIN)/python -m bench.delivery $(BENCH)

.PHONY: bench-day
bench-day: setup ## Simulate a day with random faults, a hundred times faster, 15 minutes
	@$(BIN)/python -m bench.day $(BENCH)

.PHONY: bench-storage
bench-storage: setup ## Measure the size of a sample on disk against plain Delta tables, three minutes
	@$(BIN)/python -m bench.storage $(BENCH)

.PHONY: bench-rollup
bench-rollup: setup ## Measure rollups of a day, an hour of 425 brokers and more, idle machine; BENCH="--only NAME"
	@$(BIN)/python -m bench.rollup $(BENCH)

.PHONY: bench-native
bench-native: setup ## Compare native Spark SQL with the kernel, idle machine
	@$(BIN)/python -m bench.native $(BENCH)

.PHONY: bench-small
bench-small: setup ## Measure rollup, report and reads of a small lake; BENCH="--against COMMIT"
	@$(BIN)/python -m bench.small $(BENCH)

.PHONY: bench-live
bench-live: setup ## Measure latency and cost of rollup --every, 90 minutes; BENCH="--only NAME"
	@$(BIN)/python -m bench.live $(BENCH)

.PHONY: bench-truth
bench-truth: setup ## Check bounds and reports against the truth of seeded fault schedules, ten minutes
	@$(BIN)/python -m tests.truth $(BENCH)

.PHONY: bench-startup
bench-startup: setup ## Measure the duration of jmxlake-agent --help
	@$(BIN)/python -m bench.startup $(BENCH)

##@ Publish
DIST := dist

.PHONY: release
release: releasable dist sbom bundle plugin ## Build all release files with SHA256SUMS in dist/ from a clean commit; requires registries
	@$(BIN)/python -m deploy.release pack $(DIST)
	@echo "A pushed tag publishes these files (CONTRIBUTING.md, Release)"

.PHONY: releasable
releasable: $(VENV)/.installed
	@$(BIN)/python -m deploy.release check
	@rm -rf $(DIST)

.PHONY: dist
dist: $(VENV)/.installed ## Build wheel, source distribution and report.schema.json in dist/
	@$(BIN)/python -m hatchling build -d $(DIST)
	@$(BIN)/python -m lakehouse.report.facts.report_json > $(DIST)/report.schema.json

EXTRAS := agent jmxquery maintain databricks local spark connect

.PHONY: audit
audit: $(VENV)/.installed ## List known vulnerabilities of requirements.lock with the advisory service; AUDIT=--json
	@exec $(BIN)/python -m deploy.audit $(AUDIT)

.PHONY: sbom
sbom: $(VENV)/.installed ## Write the packages of each extra as CycloneDX to dist/; requires the package index
	@mkdir -p $(DIST)
	@tools=$$($(BIN)/python -m deploy.tools audit); \
	for extra in $(EXTRAS); do \
	  clean=$$(mktemp -d); \
	  $(BIN)/uv venv --quiet --python $(BIN)/python $$clean/venv; \
	  $(BIN)/uv pip install --quiet --python $$clean/venv/bin/python --constraints requirements.lock ".[$$extra]"; \
	  $$tools/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
	    --output-format JSON --output-file $(DIST)/jmxlake-$$extra.cdx.json $$clean/venv/bin/python; \
	  rm -rf $$clean; \
	done

.PHONY: bundle
bundle: $(VENV)/.installed ## Build tarball, .deb and .rpm that require neither network nor Python in dist/; PYTHONS="FOLDER ..."
	$(call need,readelf,binutils)
	@$(BIN)/python -m deploy.bundle $(addprefix --python ,$(PYTHONS)) --out $(DIST)

.PHONY: plugin
plugin: java ## Build the broker plugins (deploy/kafka) as jars in dist/; requires Maven's repository
	$(call need,mvn,maven)
	@mvn --quiet --batch-mode --file deploy/kafka/pom.xml package
	@mvn --quiet --batch-mode --file deploy/kafka/aiven/pom.xml package
	@mkdir -p $(DIST)
	@cp deploy/kafka/target/jmxlake-kafka-*.jar deploy/kafka/aiven/target/jmxlake-kafka-*.jar $(DIST)/

##@ Clean
.PHONY: clean
clean: ## Remove output of the demo and tools; keeps .venv and .cache
	@rm -rf .demo .docs .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist deploy/kafka/target deploy/kafka/aiven/target

.PHONY: help
help: ## Print this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Prerequisites of the targets above.
$(VENV)/.installed: requirements.lock pyproject.toml
	@echo "setting up $(VENV), about a minute"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "jmxlake requires Python 3.11 or later. Run make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --no-compile --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: java
java:
	$(call need,java,openjdk-17-jdk-headless)
	$(call need,javac,openjdk-17-jdk-headless)

.PHONY: browser
browser:
	$(call need,chromium,chromium)
	$(call need,pdftotext,poppler-utils)

.PHONY: promtool
promtool:
	$(call need,promtool,prometheus)

.PHONY: jars
jars: $(VENV)/.installed java
	@$(BIN)/python -m demo.jars

.PHONY: s3
s3: $(VENV)/.installed
	@$(BIN)/python -m tests.rig.s3.install
