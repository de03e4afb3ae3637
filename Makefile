# Postdate. `make` prints what there is.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PYTHONPATH := .:platform

.PHONY: help up test fast spark check demo crash interop simulate fuzz browser screenshots bench lint lock

help: ## Print this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: $(VENV)/.installed ## Set up and run everything here; Ctrl-C stops it
	@$(BIN)/python manage.py bootstrap
	@exec $(BIN)/python -m postdate.supervisor

test: fast spark ## Run the tests, except those that kill processes

fast: $(VENV)/.installed-dev $(VENV)/.installed-analytics ## Of these, all that need no Spark session
	@$(BIN)/python -m pytest -n auto --dist loadgroup -m "not crash and not interop and not browser and not spark" $(ARGS)

spark: $(VENV)/.installed-dev $(VENV)/.installed-analytics ## Of these, those that need a Spark session, in a process of their own
	@$(BIN)/python -m pytest -n 0 -m spark tests/analytics $(ARGS)

crash: $(VENV)/.installed-dev ## Run the tests that kill and stop real processes
	@$(BIN)/python -m pytest -m crash $(ARGS)

interop: $(VENV)/.installed-dev ## A real RocketMQ broker on our export, and its store read by us (Maven, Java)
	@$(BIN)/python -m pytest -m interop -n 0 tests/interop $(ARGS)

browser: $(VENV)/.installed-dev ## Every page and action of the console in a real headless Chromium
	@$(BIN)/python -m pytest -m browser -n 0 tests/browser $(ARGS)

screenshots: $(VENV)/.installed-dev $(VENV)/.installed-analytics ## A picture of every page, wide and narrow, light and dark, in var/screenshots
	@$(BIN)/python -m tests.support.screenshots $(ARGS)

simulate: $(VENV)/.installed-dev ## Play 3,000 seeded worlds and some new ones against a model; SEED=n plays one again
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED)) $(ARGS)

fuzz: $(VENV)/.installed-dev ## Requests made of the API's own description, right and wrong ones; FUZZ_CASES=300 a route
	@FUZZ_CASES=$(or $(FUZZ_CASES),300) $(BIN)/python -m pytest tests/http/test_description.py $(ARGS)

lint: $(VENV)/.installed-dev $(VENV)/.installed-analytics ## Format, lint, types, import contracts, dependencies, migrations
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry .
	$(BIN)/python manage.py makemigrations --check --dry-run

check: lint test simulate crash browser ## Everything that CI runs

demo: $(VENV)/.installed ## 10,000 orders with payment deadlines, over the REST API of a platform of its own
	@$(BIN)/python manage.py demo $(ARGS)

bench: $(VENV)/.installed-dev ## Measure store, REST and lateness, with peers where they can be had
	@$(BIN)/python -m benchmarks $(ARGS)

lock: $(VENV)/.installed-dev ## Compile requirements*.in again, with hashes and no addresses
	@for name in requirements requirements-dev requirements-analytics; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	    $(ARGS) $$name.in -o $$name.txt || exit 1; \
	done

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Postdate needs Python 3.11 or later; name one: make PYTHON=python3.12 …")'
	@echo "Making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: requirements.txt | $(VENV)/bin/python
	@echo "Installing the locked packages (a minute, once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed
	@echo "Installing the locked packages for development (a minute, once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

$(VENV)/.installed-analytics: requirements-analytics.txt $(VENV)/.installed
	@echo "Installing the locked packages of reports, Spark and a Java among them (minutes, once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-analytics.txt
	@touch $@
