# Needs only python3 and make; uv is used where it is found, because it installs faster.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)

.PHONY: demo test check clean

demo: $(VENV)/.installed-plot
	$(BIN)/sparsebayes demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q -n 2

check: $(VENV)/.installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
ifdef UV
	$(UV) venv --quiet --python $(PYTHON) $(VENV)
else
	$(PYTHON) -m venv $(VENV)
endif

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
ifdef UV
	$(UV) pip install --quiet --python $(BIN)/python --editable ".[$*]"
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
endif
	@touch $@
