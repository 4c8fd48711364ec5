# One task runner for people and CI. PYTHON is the interpreter that makes the environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ENGINES ?= .engines
HARNESS ?= ../shared/oracle/oracle.py
MODELS ?= ../shared/models

.PHONY: setup demo test check bench wheel docs oracle engines clean

setup: $(VENV)/ready  ## Make the environment

# installers do not byte-compile an editable package, and some machines forbid writing bytecode at run time
$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m compileall -q solver knowledge
	touch $@

demo: setup  ## Solve the case of docs/architecture.md
	$(BIN)/flagwise solve --goal min-pcie-roundtrips --model qwen3.5-397b-a17b-nvfp4 --hardware 8xrtx-pro-6000 \
	  --engine-version 0.5.10 -- --tp 8

test: setup  ## Lint, types, tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto

bench: setup  ## Whole-process times as ratios to an empty Python; solving at ten times the knowledge
	$(BIN)/python -m compileall -q solver knowledge
	$(BIN)/python benchmarks/whole_process.py
	$(BIN)/python benchmarks/scale.py

wheel: setup  ## Build the wheel and try it outside the checkout
	$(BIN)/python -m build --wheel --outdir dist .
	$(BIN)/python tools/try_wheel.py dist

docs: setup  ## Regenerate what is derived
	$(BIN)/python tools/write_docs.py

engines:  ## Environments in which the releases' own argument code runs (slow, about 10 GB)
	../shared/oracle/setup.sh $(ENGINES) 0.5.9 0.5.10 0.5.12 0.5.23

oracle: setup  ## Ask the releases' own argument code about every rule example; results are committed
	PYTHONPATH=. $(BIN)/python tools/confirm_rules.py --harness $(HARNESS) --envs $(ENGINES) --models $(MODELS)

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
