# Everything a fresh machine needs is Python 3.11 or newer and make. `make` alone says what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNS ?= runs

.PHONY: help setup demo test slow lint format types bench docs pictures results clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 12

setup: $(STAMP)  ## make .venv with Regard and its tools

# torch and torchvision first and by their exact versions: each build of the one goes with one of the other.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$(grep -E '^torch(vision)?==' constraints.txt)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,lint]'
	touch $(STAMP)

demo: setup  ## train a translator with attention, translate, show where it looks (3 minutes)
	$(BIN)/regard demo

test: setup  ## all quick tests
	$(BIN)/python -m pytest -q

slow: setup  ## the long trainings among the tests
	$(BIN)/python -m pytest -q -m slow

lint: setup  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## put the code into its format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## measure speed beside transformers
	$(BIN)/python benchmarks/translation.py

docs: setup  ## the documentation as HTML in docs/_build/html
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html

pictures: setup  ## the pictures of docs/pictures.md; trains two translators where $(RUNS)/pictures has none
	$(BIN)/python docs/pictures/make.py $(RUNS)/pictures

results: setup  ## train what is missing of the published results; may be interrupted and called again
	$(BIN)/regard results --root $(RUNS)

clean:  ## remove what can be made again, but no run
	rm -rf $(VENV) build dist docs/_build .pytest_cache .ruff_cache .mypy_cache
