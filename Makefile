# Needs only python3 and make; uv is used where it is found, because it installs faster.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)

# Every layer once, from the basis to the command line, in less than a minute on two cores.
QUICK := $(addprefix tests/, \
	unit/test_basis.py unit/test_design.py unit/test_likelihood.py unit/test_moments.py \
	reference/test_active.py reference/test_certificate.py reference/test_screening.py reference/test_posterior.py \
	property/test_offsets.py unit/test_summary.py unit/test_plan.py unit/test_sql.py unit/test_wavelets.py \
	unit/test_reproduce.py unit/test_cli_export.py)

.PHONY: demo test test-quick mutation check docs bench bench-quick reproduction clean

demo: $(VENV)/.installed-plot
	$(BIN)/sparsebayes demo

test: $(VENV)/.installed-torch
	$(BIN)/python -m pytest -q -n 2

test-quick: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q -n 2 $(QUICK)

# Hours without further arguments: make mutation ARGS="--sample 20 --only inference/status"
mutation: $(VENV)/.installed-test
	$(BIN)/python tests/mutation $(ARGS)

check: $(VENV)/.installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

# The gallery's pictures need no screen.
docs: export MPLBACKEND := agg
docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --builder html docs docs/_build/html

bench: $(VENV)/.installed-files
	$(BIN)/sparsebayes bench --out benchmarks/results.json

bench-quick: $(VENV)/.installed-files
	$(BIN)/sparsebayes bench --quick

# Every study, quickly, and the page of them; the whole, without --quick, takes hours. Data sets that are not bundled are
# taken from SPARSEBAYES_DATA, or from a folder beside the checkout where there is one.
reproduction: export SPARSEBAYES_DATA := $(or $(SPARSEBAYES_DATA),$(abspath $(wildcard ../shared/data)))
reproduction: $(VENV)/.installed-test
	$(BIN)/sparsebayes reproduce all --quick --out reproduction --page docs/reproduction.md

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery docs/api/generated .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
ifdef UV
	$(UV) venv --quiet --seed --python $(PYTHON) $(VENV)
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

# Through pip, whose settings say where PyTorch's CPU build is. Where it cannot be had, the tests that need it are skipped
# and say so.
$(VENV)/.installed-torch: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[torch]" \
		|| echo "PyTorch could not be installed: the tests that need it are skipped"
	@touch $@
