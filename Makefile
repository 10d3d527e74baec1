# Everything a developer runs. A clean clone needs Python 3.11+, make and git; `make setup` does the rest.

SHELL := /bin/bash
.DEFAULT_GOAL := help

BIN := .venv/bin
STAMP := .venv/.setup-done
SERVERS := .venv/.servers-done

# Looked up at each use, so that a Java installed, moved or removed after set-up is noticed.
WITH_JAVA = JAVA_HOME="$$(scripts/find-java.sh)"

# A run on Spark starts several Python processes. Where bytecode is not kept, each compiles every module anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup servers demo test test-all lint types format reference lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv, install the lock file, find or install Java 17+

# The stamp makes every later call instant until a file changes that says what is needed.
$(STAMP): requirements.lock pyproject.toml
	@scripts/setup.sh
	@touch $@

servers: $(SERVERS) ## install the servers that tests start: Mosquitto, PostgreSQL, Kafka, an object store

$(SERVERS): $(STAMP) scripts/servers.sh $(wildcard scripts/jars/*.xml)
	@scripts/servers.sh
	@touch $@

demo: setup ## set up, then run the main job: 150 traffic queries
	$(WITH_JAVA) $(BIN)/penstock demo

test: servers lint types ## set up, then lint, types and tests
	$(WITH_JAVA) $(BIN)/pytest

test-all: servers lint types ## the same with the slow tests
	$(WITH_JAVA) $(BIN)/pytest -m "slow or not slow"

lint: setup ## ruff: rules and format; spelling; Markdown wrapped at sentences
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/typos
	$(BIN)/python scripts/wrap_markdown.py --check

types: setup ## mypy --strict on the package, the laboratory and the scripts
	$(BIN)/mypy

format: setup ## let ruff rewrite what it can, and wrap Markdown at sentences
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python scripts/wrap_markdown.py

reference: setup ## re-make what is made from declarations: tables of the docs, methods of expressions
	$(BIN)/python -m penstock.query.reference
	$(BIN)/ruff format -q penstock/query/expr_methods.py penstock/query

# Versions already in the file are kept where they still fit; UPGRADE=--upgrade moves all of them.
lock: setup ## re-make requirements.lock (UPGRADE=--upgrade for newer versions)
	$(BIN)/uv pip compile pyproject.toml --all-extras --group lab --group dev --group build --output-file requirements.lock \
		--python-version 3.11 --universal --fork-strategy fewest \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet $(UPGRADE)
	@if grep -n '://' requirements.lock; then echo "requirements.lock must hold no addresses" >&2; exit 1; fi

clean: ## remove caches and build products; .venv and results stay
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse metastore_db derby.log
	find penstock lab tests examples -type d -name __pycache__ -prune -exec rm -rf {} +
