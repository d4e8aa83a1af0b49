# Two commands set everything up on a fresh machine: `make demo` and `make test`.
# They need python3 (3.11 or newer) with venv, and make; everything lands in .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEMO   := $(VENV)/.demo
HEAVY  := $(VENV)/.heavy
DOCS   := $(VENV)/.docs
PEERS  := $(VENV)/.bench
DIST   := $(VENV)/.dist
OLD    := .venv-oldest
OLDEST := $(OLD)/.installed
# What to install is named in pyproject.toml; these are the versions.
PINS   := requirements/pins.txt
PIP    := -m pip install --quiet --disable-pip-version-check
INSTALL := $(BIN)/python $(PIP) --constraint $(PINS)
# BLAS threads multiply with the test workers; one thread each is fastest. Where nothing
# compiled may be kept, every worker and every process that a test starts compiles anew.
TESTENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=

.PHONY: help demo test test-contract test-all test-slow test-oldest check format heavy docs peers bench dist clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# Dependency groups need pip 25.1, so pip itself comes first.
$(DEMO): pyproject.toml $(PINS)
	$(PYTHON) -c 'import sys; sys.exit("greenfold needs Python 3.11 or newer; run make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) pip
	$(INSTALL) --group demo --editable .
	@touch $@

$(STAMP): $(DEMO)
	$(INSTALL) --group dev --editable .
	@touch $@

$(HEAVY): $(STAMP)
	$(INSTALL) --group heavy
	@touch $@

$(DOCS): $(STAMP)
	$(INSTALL) --group docs
	@touch $@

$(PEERS): $(STAMP)
	$(INSTALL) --group bench
	@touch $@

$(DIST): $(STAMP)
	$(INSTALL) --group dist
	@touch $@

$(OLDEST): pyproject.toml requirements/oldest.txt
	test -x $(OLD)/bin/python || $(PYTHON) -m venv $(OLD)
	$(OLD)/bin/python $(PIP) --constraint $(PINS) pip
	$(OLD)/bin/python $(PIP) --constraint requirements/oldest.txt --group test --group heavy --editable .
	@touch $@

demo: $(DEMO)  ## fit and compare on synthetic heartbeats, write a report page
	$(BIN)/greenfold demo

test: $(STAMP)  ## run the test suite, two minutes on two cores
	$(TESTENV) $(BIN)/python -m pytest -n auto

test-contract: $(HEAVY)  ## suites of scikit-learn and aeon, kills, clusters, browsers, long cases
	$(TESTENV) $(BIN)/python -m pytest -m "contract and not slow" -n auto

# CI gives REMAINING=--remaining: then without what passed in the run before.
test-all: $(HEAVY)  ## both of these, with every optional part
	$(TESTENV) $(BIN)/python -m pytest -m "not slow" -n auto $(REMAINING)

test-slow: $(STAMP)  ## the full-size reproductions, minutes each
	$(TESTENV) $(BIN)/python -m pytest -m slow -n auto

# aeon's checks import a part of scikit-learn that before 1.7 wants this variable.
test-oldest: $(OLDEST)  ## the suite with the oldest supported versions
	$(TESTENV) $(OLD)/bin/python -m pytest -m "not slow" -n auto --ignore-glob='*/test_aeon.py'
	$(TESTENV) SCIPY_ARRAY_API=1 $(OLD)/bin/python -m pytest -m "not slow" -n auto $$(find tests -name test_aeon.py)

check: $(STAMP)  ## lint, format, types, layers, bounds and guards of tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python requirements/check.py
	$(BIN)/python -m tests.parts

format: $(STAMP)  ## apply the formatter and the safe lint fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

heavy: $(HEAVY)  ## add the optional parts some tests need (PyTorch, NEST, aeon, dask, ONNX, reservoirpy)

docs: $(DOCS)  ## check the texts against code and records; build the pages, their code executed
	$(TESTENV) $(BIN)/python -m pytest -q docs/tests
	$(TESTENV) $(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

peers: $(PEERS)  ## install the libraries that benchmarks compare with

bench: $(PEERS)  ## compare with these libraries, as ratios in one run
	$(BIN)/python -m benchmarks.series
	$(BIN)/python -m benchmarks

dist: $(DIST)  ## build wheel and sdist, install each on its own and try it
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python .ci/install.py dist

clean:  ## remove the environments and caches
	rm -rf $(VENV) $(OLD) .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist docs/_build docs/api/generated docs/api/examples docs/gallery
