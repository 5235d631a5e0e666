# Everything here works from a fresh clone; `make help` lists it.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := build/demo
PACKED := build/environment
AIRFLOW_VENV := .venv-airflow
DOCS := build/docs
DOCS_VENV := build/docs-environment
PYTHONS ?= python3.12 python3.13
AIRFLOW_DEMO := build/airflow
# Beside jars/kafka, to compare what releases do with a log (tests/releases)
RELEASES := 3.9.2 4.1.2 4.2.2 4.4.0
S3_SERVER := build/s3-server/versitygw
# tests/conftest.py puts long files first
IN_TWO := -n 2 --dist loadfile --no-loadscope-reorder
# Slow tests wait for brokers and schedulers for half of their time.
IN_THREE := -n 3 --dist loadfile --no-loadscope-reorder
# Tests start dozens of processes: each would compile all of the package's modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo build environment test test-fast test-slow test-long test-wheel test-bounds test-random fuzz mutants lint audit bench docs docs-setup clean jars jars-s3 jars-test s3-server messages lock airflow-setup airflow

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.compiled jars ## make .venv with the locked packages, compile what reads segments, fetch Delta's JARs

demo: setup ## build the sample segments' indexes and tables, show them and what retention decides
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	@$(BIN)/python -m tarfile -e tests/golden/broker.tar.xz $(DEMO)
	@status=0; $(BIN)/kafka-segments build --source $(DEMO)/broker/logs \
	  --index-dir $(DEMO)/indexes --warehouse $(DEMO)/warehouse || status=$$?; \
	[ $$status -le 1 ] || exit $$status
	@status=0; $(BIN)/kafka-segments retention --warehouse $(DEMO)/warehouse \
	  --now-ms 1795000000000 --set retention_ms=2592000000 || status=$$?; \
	[ $$status -le 1 ] || exit $$status
	@echo "segments: $(DEMO)/broker/logs   index files: $(DEMO)/indexes   tables: $(DEMO)/warehouse"

build: setup ## make the wheel and the zip for spark-submit's --py-files, in dist/
	@rm -rf dist && mkdir -p dist
	@$(BIN)/python -m pip wheel -q --no-deps -w dist .
	@cd dist && $(abspath $(BIN))/python -m zipfile -e *.whl unpacked && cd unpacked \
	  && $(abspath $(BIN))/python -m zipfile -c ../kafka_segments.zip kafka_segments \
	  && cd .. && rm -r unpacked
	@ls dist

environment: build ## pack the package with its dependencies, compiled, for spark-submit's --archives
	@rm -rf $(PACKED) $(PACKED)-sample && $(PYTHON) -m venv $(PACKED)
	@$(BIN)/python -m pip wheel -q --require-hashes -r requirements.lock -w build/wheels
	@$(PACKED)/bin/python -m pip install -q --no-index --find-links build/wheels "$$(echo dist/*.whl)[report,validate]"
	@$(BIN)/python -m tarfile -e tests/golden/broker.tar.xz $(PACKED)-sample
	@PYSPARK_PYTHON=$(abspath $(PACKED))/bin/python $(PACKED)/bin/spark-submit --master 'local[1]' \
	  --jars "$$(ls jars/delta/*.jar | paste -sd,)" jobs/build_indexes.py \
	  --source $(PACKED)-sample/broker/logs --index-dir $(PACKED)-sample/indexes \
	  --warehouse $(PACKED)-sample/warehouse >$(PACKED)-sample.log 2>&1 || { cat $(PACKED)-sample.log; exit 1; }
	@tar -C $(PACKED) --exclude=pyspark/jars -czf dist/environment.tar.gz .
	@ls dist

airflow-setup: $(AIRFLOW_VENV)/.done ## make .venv-airflow with Airflow and its Spark provider

airflow: setup airflow-setup ## start Airflow with the DAGs on the sample segments: http://localhost:8080
	@mkdir -p $(AIRFLOW_DEMO) && $(BIN)/python -m tarfile -e tests/golden/broker.tar.xz $(AIRFLOW_DEMO)
	@echo "tables: $(AIRFLOW_DEMO)/warehouse"
	@airflow_dags/local.sh start kafka_segments_rebuild kafka_segments_retention

docs: setup docs-setup ## build docs/ as a site with search, and man pages, in build/docs
	@rm -rf $(DOCS) && $(BIN)/python conf/docs/manual.py $(DOCS)
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build -q --strict -f conf/docs/mkdocs.yml
	@echo "site: $(PYTHON) -m http.server -d $(DOCS)/site   man pages: man -M $(DOCS)/man kafka-segments-triage"

docs-setup: $(DOCS_VENV)/.done ## install what make docs needs, in an environment of its own

$(DOCS_VENV)/.done: conf/docs/requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found: install Python 3.11 or later, or set PYTHON="; exit 1; }
	@rm -rf $(DOCS_VENV) && $(PYTHON) -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install -q --disable-pip-version-check --no-deps \
	  --require-hashes -r conf/docs/requirements.lock
	@touch $@

test: setup jars-s3 jars-test airflow-setup ## run the tests, all but those of test-slow and test-long
	@$(BIN)/python -m pytest $(IN_TWO) -m "not slow and not long"

test-fast: setup ## run the tests that start no JVM and no Airflow
	@$(BIN)/python -m pytest $(IN_TWO) -m "not slow and not long and not spark and not referee and not hdfs and not airflow"

test-slow: setup jars-s3 jars-test airflow-setup s3-server ## run what takes minutes: Airflow's scheduler, stores, brokers, faults
	@$(BIN)/python -m pytest $(IN_THREE) -m "slow and not long"

test-long: setup jars-s3 jars-test airflow-setup s3-server docs-setup ## run what neither of both runs: clusters, kills, each verb; before a release, an hour or more
	@$(BIN)/python -m pytest $(IN_TWO) -m long

test-wheel: setup build/pythons/.done ## install the wheel into the other Pythons (PYTHONS="python3.12 python3.13") and run it there
	@WHEEL_PYTHONS="$$(ls -d $(CURDIR)/build/pythons/*/bin/python | paste -sd:)" \
	  $(BIN)/python -m pytest tests/house/test_installed.py

build/pythons/.done: requirements.lock
	@rm -rf $(@D) && mkdir -p $(@D)
	@for python in $(PYTHONS); do \
	  command -v $$python >/dev/null || { echo "$$python not found: set PYTHONS="; exit 1; }; \
	  echo "installing the locked packages for $$python …"; \
	  $$python -m venv $(@D)/$$(basename $$python) && $(@D)/$$(basename $$python)/bin/python -m pip install -q \
	    --disable-pip-version-check --require-hashes -r requirements.lock || exit 1; \
	done
	@touch $@

test-bounds: setup jars-test build/bounds/oldest/.done build/bounds/newest/.done ## the tests without a JVM, then the wheel, on the oldest and the newest releases that pyproject.toml allows
	@for bound in oldest newest; do \
	  echo "on the $$bound releases:"; \
	  build/bounds/$$bound/bin/python -m pytest $(IN_TWO) -W default \
	    -m "not slow and not long and not spark and not referee and not hdfs and not airflow" || exit 1; \
	done
	@WHEEL_PYTHONS="$(CURDIR)/build/bounds/oldest/bin/python:$(CURDIR)/build/bounds/newest/bin/python" \
	  $(BIN)/python -m pytest tests/house/test_installed.py

build/bounds/oldest/.done: RESOLUTION := lowest-direct
build/bounds/newest/.done: RESOLUTION := highest
build/bounds/%/.done: pyproject.toml
	@echo "installing the $* releases that pyproject.toml allows …"
	@rm -rf $(@D) && $(PYTHON) -m venv $(@D)
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv
	@$(BIN)/uv pip compile -q --python $(@D)/bin/python --resolution $(RESOLUTION) --extra all -o $(@D)/bounds.txt pyproject.toml
	@$(BIN)/uv pip install -q --python $(@D)/bin/python -c $(@D)/bounds.txt -e '.[dev]'
	@touch $@

test-random: setup jars-test ## the random comparisons with Kafka's classes, more of them on new input
	@REFEREE_SEED=random REFEREE_LOGS=300 REFEREE_PARTITIONS=2000 MUTATED_LOGS=10000 ROLL_PARTITIONS=60 ROLL_CASES=100 \
	  $(BIN)/python -m pytest -m "not slow and not long and not airflow and (not spark or drawn)"

fuzz: setup jars-test ## every parser, 5,000 rounds of new spoiled input each, array bounds checked; every manifest, 1,500 faults
	@REFEREE_SEED=random FUZZ_ROUNDS=5000 NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/fuzz \
	  $(BIN)/python -m pytest tests/wire/test_fuzz.py tests/internals/test_record_columns.py
	@REFEREE_SEED=random FUZZ_ROUNDS=1500 $(BIN)/python -m pytest $(IN_TWO) \
	  tests/changes/test_fuzzed_manifests.py tests/recovery/test_fuzzed_manifests.py

mutants: setup jars-test ## change single places of what is pure: which changes does no test notice? (MUTANTS=--help)
	@PYTHONPATH=lib:tests $(BIN)/python -m mutants $(MUTANTS)

lint: setup ## ruff, mypy --strict, import rules, what the lock files pin
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
	@$(BIN)/python tests/support/house/dependency_audit.py

audit: setup ## published advisories about any pinned package fail
	@$(BIN)/python tests/support/house/dependency_audit.py --strict

bench: setup jars-test ## measure beside Kafka's own code, an hour; writes docs/benchmarks.md (SECTIONS=...: only these; BEFORE=revision: that and this one in turn)
	@$(BIN)/python benchmarks/bench.py $(SECTIONS) $(addprefix --before ,$(BEFORE))

jars: jars/delta
jars-s3: jars/s3 ## fetch the JARs for a warehouse on S3
jars-test: jars/kafka jars/releases jars/hdfs

s3-server: $(S3_SERVER) ## build the S3 server that slow tests run on; they are skipped where Go 1.25 lacks

$(S3_SERVER): tests/s3_server/go.mod tests/s3_server/go.sum
	@if ! command -v go >/dev/null; then \
	  echo "go not found: tests on a real S3 server will be skipped; to run them install Go 1.25 or later"; \
	elif [[ $$(printf '%s\n' go1.25 "$$(go env GOVERSION)" | sort -V | head -1) != go1.25 ]]; then \
	  echo "$$(go env GOVERSION) is older than 1.25: tests on a real S3 server will be skipped"; \
	else \
	  echo "building an S3 server for the tests …"; \
	  if ! why=$$(go list -C tests/s3_server -deps tool 2>&1 >/dev/null); then \
	    echo "$$why" | tail -3; \
	    [[ $$why != *"checksum mismatch"* ]] || exit 1; \
	    echo "its modules cannot be fetched: tests on a real S3 server will be skipped"; exit 0; \
	  fi; \
	  go build -C tests/s3_server -buildvcs=false -trimpath -ldflags '-s -w' -o $(abspath $(@D))/ tool && touch $@; \
	fi

jars/delta: pom.xml
	@if command -v mvn >/dev/null; then rm -rf $@ && mvn -q -B generate-resources >/dev/null && touch $@; \
	else echo "mvn not found: Spark will resolve Delta's JARs itself; to prefetch them install Maven"; fi

jars/s3: pom.xml
	@command -v mvn >/dev/null || { echo "mvn not found: install Maven (e.g. apt-get install maven)"; exit 1; }
	@rm -rf $@ && mvn -q -B -Ps3 generate-resources >/dev/null && touch $@

jars/kafka: pom.xml
	@command -v mvn >/dev/null && command -v javac >/dev/null || { \
	  echo "mvn or javac not found: the tests need both (e.g. apt-get install maven openjdk-17-jdk-headless)"; exit 1; }
	@rm -rf $@ && mvn -q -B -Pkafka generate-resources >/dev/null && touch $@

jars/releases: pom.xml
	@command -v mvn >/dev/null || { echo "mvn not found: the tests need it (e.g. apt-get install maven)"; exit 1; }
	@rm -rf $@ && for release in $(RELEASES); do \
	  artifact=kafka-storage; [[ $$release == 4.* ]] || artifact=kafka_2.13; \
	  mvn -q -B -Prelease -Dkafka.version=$$release -Dkafka.artifact=$$artifact generate-resources >/dev/null || exit 1; \
	done && touch $@

jars/hdfs: pom.xml
	@command -v mvn >/dev/null || { echo "mvn not found: the tests need it (e.g. apt-get install maven)"; exit 1; }
	@rm -rf $@ && mvn -q -B -Phdfs generate-resources >/dev/null && touch $@

$(VENV)/.done: requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found: install Python 3.11 or later, or set PYTHON="; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: set PYTHON="; exit 1; }
	@command -v java >/dev/null || { echo "java not found: install a JDK 17 or later (e.g. apt-get install openjdk-17-jdk-headless)"; exit 1; }
	@echo "installing the locked packages into $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.compiled: $(VENV)/.done
	@echo "compiling what reads segments, once …"
	@$(BIN)/kafka-segments --compile
	@touch $@

$(AIRFLOW_VENV)/.done: airflow_dags/requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found: install Python 3.11 or later, or set PYTHON="; exit 1; }
	@echo "installing Airflow into $(AIRFLOW_VENV) …"
	@$(PYTHON) -m venv $(AIRFLOW_VENV)
	@$(AIRFLOW_VENV)/bin/python -m pip install -q --disable-pip-version-check --no-deps \
	  --require-hashes -r airflow_dags/requirements.lock
	@touch $@

messages: setup jars-test ## draw Kafka's message definitions from the JARs in jars/kafka (lib/kafka_segments/kafka/messages/messages.json)
	@PYTHONPATH=lib:tests $(BIN)/python tests/support/kafka/message_definitions.py

lock: ## renew requirements.lock from pyproject.toml, and those of Airflow and make docs from requirements.in beside them
	@$(BIN)/python -m pip install -q uv
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --extra dev -o requirements.lock pyproject.toml
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-strip-extras \
	  --no-emit-index-url --no-header -o airflow_dags/requirements.lock airflow_dags/requirements.in
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header -o conf/docs/requirements.lock conf/docs/requirements.in

clean: ## remove what the other targets made, .venv and JARs included
	@rm -rf $(VENV) $(AIRFLOW_VENV) jars build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
