# Two commands set everything up on a fresh machine: `make demo` and `make test`.
# They need python3 (3.11 or newer) with venv, and make; everything lands in .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
HEAVY  := $(VENV)/.heavy
DOCS   := $(VENV)/.docs
# BLAS threads multiply with the test workers; one thread each is fastest.
TESTENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help demo test test-slow check format heavy docs bench clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml requirements/dev.txt
	$(PYTHON) -c 'import sys; sys.exit("greenfold needs Python 3.11 or newer; run make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt -e .
	@touch $@

$(HEAVY): $(STAMP) requirements/heavy.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/heavy.txt
	@touch $@

demo: $(STAMP)  ## fit and compare on synthetic heartbeats, write a report page
	$(BIN)/greenfold demo

test: $(STAMP)  ## run the whole test suite
	$(TESTENV) $(BIN)/python -m pytest -n auto

test-slow: $(STAMP)  ## the full-size reproductions, minutes each
	$(TESTENV) $(BIN)/python -m pytest -m slow -n auto

check: $(STAMP)  ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(STAMP)  ## apply the formatter and the safe lint fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

heavy: $(HEAVY)  ## add the optional parts some tests need (PyTorch, NEST, aeon, ONNX)

$(DOCS): $(STAMP) requirements/docs.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt
	@touch $@

docs: $(DOCS)  ## build the documentation, its code executed
	$(TESTENV) $(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

bench: $(STAMP)  ## measure against the peers, as ratios in one run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/bench.txt
	$(BIN)/python -m benchmarks

clean:  ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist docs/_build docs/api/generated
