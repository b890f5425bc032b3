# Everything a person does with this repository; `make` alone says what there is.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin

# Installs a program with the system's package manager where it is missing and we may.
define need
@command -v $(1) >/dev/null || { \
  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    echo "installing $(2)"; \
    apt-get update -qq >/dev/null; \
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(2) >/dev/null; \
  else \
    echo "$(1) is missing and we may not install it: install the package $(2), then try again" >&2; \
    exit 1; \
  fi; }
endef

##@ Use
.PHONY: demo
demo: $(VENV)/.installed java ## A real Kafka cluster with faults, scraped, rolled up and reported in .demo/report.html
	@exec $(BIN)/python -m demo

##@ Develop
.PHONY: setup
setup: $(VENV)/.installed java jars s3 ## Virtual environment, Java 17, the jars of Kafka and Delta, an S3 server

# Each process imports everything first, so that many do not pay; a file's tests share what they set up.
UNIT := $(BIN)/pytest tests/unit --numprocesses logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.PHONY: test
test: setup browser promtool ## Everything: lint, unit tests, then real Kafka, Spark and browser
	@$(MAKE) --no-print-directory -j2 lint archives
	@$(UNIT)
	@exec $(BIN)/python -m tests.lanes

.PHONY: archives
archives: $(VENV)/.installed
	@$(BIN)/python -m tests.class_archives

.PHONY: test-fast
test-fast: $(VENV)/.installed java ## Unit tests but the slow ones, about 40 s
	@$(UNIT) -m "not slow"

.PHONY: test-nightly
test-nightly: test-connect test-cluster test-s3-spark test-truth test-truth-kafka ## What is too long for every change: the five below

.PHONY: test-connect
test-connect: setup ## The rollup's tests, and every notebook, over Spark Connect; two over the demo's lake
	@$(BIN)/pytest --spark connect -m spark tests/integration/test_rollup*.py tests/integration/test_limits.py \
	  tests/integration/test_counters_made_late.py
	@$(BIN)/pytest tests/everywhere/connect.py tests/everywhere/connect_live.py tests/everywhere/connect_faults.py
	@$(BIN)/pytest tests/integration/test_demo.py -k notebooks

.PHONY: test-cluster
test-cluster: setup ## A bigger lake on a Spark cluster of three processes, and faults of one; asks the package index
	@$(BIN)/pytest tests/everywhere/nightly_cluster.py
	@$(BIN)/pytest tests/everywhere/nightly_submit.py tests/everywhere/nightly_faults.py

.PHONY: test-s3-spark
test-s3-spark: setup ## A lake on a real S3 server, rolled up by Spark; fetches 12 MB of jars
	@$(BIN)/pytest tests/everywhere/s3_by_spark.py

.PHONY: test-truth
test-truth: setup ## Seven of the schedules of make bench-truth
	@$(BIN)/pytest tests/oracle/nightly_truth.py

.PHONY: test-truth-kafka
test-truth-kafka: setup ## Where Kafka's own beans mislead, each on real brokers; six minutes
	@$(BIN)/pytest tests/everywhere/truth_on_kafka.py tests/everywhere/optional_objectives_on_kafka.py \
	  tests/everywhere/own_metrics_on_kafka.py \
	  tests/integration/test_lost_before_read.py \
	  tests/integration/test_slow_copy.py tests/integration/test_quota_plugin.py
	@$(BIN)/pytest tests/integration/test_sources.py -k "without_the_listener or stopped_broker"

.PHONY: test-edges
test-edges: setup ## Ordinary faults after which no report may reassure, each a test of the others
	@exec $(BIN)/python -m tests.edges

.PHONY: test-hostile
test-hostile: setup ## Each place where a name, path, file or answer enters, times hostile values; HOSTILE="--only PLACE"
	@exec $(BIN)/python -m tests.hostile $(HOSTILE)

.PHONY: test-extending
test-extending: setup ## How many files an addition takes, in a copy where unit tests run, too; PYTEST="-n 0"
	@exec $(BIN)/python -m tests.extending $(PYTEST)

.PHONY: test-report
test-report: setup browser ## Every channel of the report against its JSON, on five lakes; REPORT=--without-demo: without the demo
	@exec $(BIN)/python -m tests.report $(REPORT)

.PHONY: test-demo-truth
test-demo-truth: setup ## The demo's report against what its clients, plugin and log counted; BENCH=--busy: on a busy machine
	@exec $(BIN)/python -m tests.demo_truth $(BENCH)

.PHONY: test-versions
test-versions: setup ## Real brokers of six releases of Kafka, over JMX and through an exporter; seven minutes
	@$(BIN)/pytest -m versions tests/integration
	@exec $(BIN)/python -m tests.versions

.PHONY: test-deploy
test-deploy: setup ## Bundle, .deb, units, Ansible, Kubernetes, on a machine with a real systemd; asks the package index
	$(call need,qemu-aarch64-static,qemu-user-static)
	@$(BIN)/pytest tests/deploy

.PHONY: test-upgrade
test-upgrade: setup ## Spool, bronze and gold of older versions (b88afb5, 69725c44, 6dfc036f) taken over, five minutes; asks the package index
	@$(BIN)/pytest tests/packaging/upgrade.py

.PHONY: test-newest
test-newest: setup ## Unit tests with the newest dependencies that pyproject.toml allows, four minutes; asks the package index
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python .cache/newest
	@$(BIN)/uv pip install --quiet --python .cache/newest/bin/python --upgrade -e '.[dev]'
	@comm -13 <(grep -oE '^[a-z0-9._-]+==[^ ]+' requirements.lock | sort) \
	  <($(BIN)/uv pip freeze --quiet --python .cache/newest/bin/python | grep == | sort) | sed 's/^/not as locked: /'
	@.cache/newest/bin/pytest tests/unit -m "not slow" --numprocesses logical --maxprocesses 4 --dist loadfile

.PHONY: test-databricks
test-databricks: setup ## What is known of Databricks without a workspace; asks the package index
	@exec $(BIN)/python -m tests.databricks

.PHONY: test-packaging
test-packaging: $(VENV)/.installed promtool ## What is published, each extra in a clean environment; asks the package index
	@$(BIN)/pytest tests/packaging/builds.py tests/packaging/extras.py tests/packaging/plugin.py \
	  tests/packaging/promtool.py tests/packaging/burn_rules.py tests/packaging/sbom.py \
	  tests/docs/duckdb_extension.py tests/packaging/release.py

.PHONY: lint
lint: $(VENV)/.installed ## ruff, mypy --strict, the import rules; no marker of a merge is left
	@! grep -rnE '^(<<<<<<<|>>>>>>>) ' --exclude-dir='.[a-z]*' .
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: format
format: $(VENV)/.installed ## Let ruff format and fix what it can
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

.PHONY: docs
docs: $(VENV)/.installed ## The documentation as a site, in .docs; what is wrong with a link fails it
	@$(BIN)/python -m mkdocs build --strict
	@echo "open .docs/index.html; to search it, too: $(BIN)/python -m http.server -d .docs"

.PHONY: pictures
pictures: $(VENV)/.installed browser ## The pictures of README.md and docs, of the sample's report; after a change of the page; two minutes
	$(call need,pngquant,pngquant)
	@$(BIN)/python -m bench.pictures

.PHONY: definitions
definitions: $(VENV)/.installed ## What the lakehouse knows of metrics, from the catalogue; after a change of it
	@$(BIN)/python -m docs.tools.definitions

# In the lock's versions, for the Python of its environments; without hashes, which the wheel has not.
ON_DATABRICKS := $(BIN)/uv pip compile --constraint requirements.lock --universal --python-version 3.12 \
  --no-header --no-annotate --no-emit-index-url --quiet -o deploy/databricks/

LOCKED := --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --quiet

.PHONY: lock
lock: $(VENV)/.installed ## Resolve pyproject.toml anew into requirements.lock, with hashes
	@$(BIN)/uv pip compile pyproject.toml --all-extras $(LOCKED) -o requirements.lock
	@$(BIN)/uv pip compile deploy/tools.txt $(LOCKED) --no-annotate -o deploy/tools.lock
	@$(BIN)/uv pip compile deploy/audit.txt $(LOCKED) --no-annotate -o deploy/audit.lock
	@echo click duckdb pyyaml rich | tr ' ' '\n' | $(ON_DATABRICKS)rollup.txt -
	@$(ON_DATABRICKS)report.txt --extra databricks pyproject.toml

# Every benchmark: BENCH="--against COMMIT" runs this tree and that commit in turn (bench/against.py).
.PHONY: bench-scrape
bench-scrape: setup ## What reading a broker costs, against other tools: 35 minutes, on a quiet machine
	@$(BIN)/python -m bench.scrape $(BENCH)

.PHONY: bench-fleet
bench-fleet: setup ## 1 to 600 agents on one S3 lake: where commits begin to wait; half an hour, on a quiet machine
	@$(BIN)/python -m bench.fleet $(BENCH)

.PHONY: bench-maintenance
bench-maintenance: setup ## What many small files cost an agent and the maintenance: five minutes
	@$(BIN)/python -m bench.maintenance $(BENCH)

.PHONY: bench-delivery
bench-delivery: setup ## A thousand kills and every other fault, and what they cost: ten minutes
	@$(BIN)/python -m bench.delivery $(BENCH)

.PHONY: bench-day
bench-day: setup ## A day with faults at random instants, a hundred times faster: a quarter of an hour
	@$(BIN)/python -m bench.day $(BENCH)

.PHONY: bench-storage
bench-storage: setup ## What a sample takes on disk, against plain Delta tables and the literature: three minutes
	@$(BIN)/python -m bench.storage $(BENCH)

.PHONY: bench-rollup
bench-rollup: setup ## Rollups of a day, an hour of 425 brokers and more, on a quiet machine; BENCH="--only NAME" for a part
	@$(BIN)/python -m bench.rollup $(BENCH)

.PHONY: bench-native
bench-native: setup ## Topics and clients of gold in native Spark SQL, against the kernel with and without Spark; on a quiet machine
	@$(BIN)/python -m bench.native $(BENCH)

.PHONY: bench-small
bench-small: setup ## A small lake rolled up, reported and read; BENCH="--against COMMIT" compares, as in all of bench-*
	@$(BIN)/python -m bench.small $(BENCH)

.PHONY: bench-live
bench-live: setup ## From an event to gold with rollup --every, and its cost: an hour and a half; BENCH="--only NAME" for a part
	@$(BIN)/python -m bench.live $(BENCH)

.PHONY: bench-truth
bench-truth: setup ## Seeded fault schedules: do bounds hold the truth, and does no report reassure falsely? ten minutes
	@$(BIN)/python -m bench.truth $(BENCH)

.PHONY: bench-startup
bench-startup: setup ## How long jmxlake-agent --help takes
	@$(BIN)/python -m bench.startup $(BENCH)

##@ Publish
DIST := dist

.PHONY: release
release: releasable dist sbom bundle plugin ## All that a release has, with SHA256SUMS, in dist/; of a clean commit; asks registries
	@$(BIN)/python -m deploy.release pack $(DIST)
	@echo "left for a person: the image, signatures, and where all this goes (CONTRIBUTING.md, Release)"

.PHONY: releasable
releasable: $(VENV)/.installed
	@$(BIN)/python -m deploy.release check
	@rm -rf $(DIST)

.PHONY: dist
dist: $(VENV)/.installed ## Wheel, source distribution and report.schema.json, in dist/
	@$(BIN)/python -m hatchling build -d $(DIST)
	@$(BIN)/python -m lakehouse.report.facts.json_schema > $(DIST)/report.schema.json

EXTRAS := agent jmxquery maintain databricks local lakehouse connect

.PHONY: audit
audit: $(VENV)/.installed ## Known vulnerabilities of requirements.lock; AUDIT=--json for a JSON line; asks the advisory service
	@exec $(BIN)/python -m deploy.audit $(AUDIT)

.PHONY: sbom
sbom: $(VENV)/.installed ## What each extra brings, as CycloneDX, in dist/; asks the package index
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
bundle: $(VENV)/.installed ## A tarball and a .deb that need no network and no Python, into dist/
	@$(BIN)/python -m deploy.bundle --deb --out $(DIST)

.PHONY: plugin
plugin: java ## The plugin for brokers (deploy/kafka) as a jar, into dist; asks Maven's repository
	$(call need,mvn,maven)
	@mvn --quiet --batch-mode --file deploy/kafka/pom.xml package
	@mkdir -p $(DIST)
	@cp deploy/kafka/target/jmxlake-kafka-*.jar $(DIST)/

##@ Tidy
.PHONY: clean
clean: ## Remove what the demo and the tools made; keeps .venv and .cache
	@rm -rf .demo .docs .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist deploy/kafka/target

.PHONY: help
help: ## This text
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# What the targets above stand on.
$(VENV)/.installed: requirements.lock pyproject.toml
	@echo "setting up $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "jmxlake needs Python 3.11 or later: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --require-hashes -r requirements.lock
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
	@$(BIN)/python -m demo.s3.install
