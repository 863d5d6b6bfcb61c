# Two commands for everyone: `make demo` and `make test`. Each makes .venv first, when it is missing.
VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
CHROMIUM := $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

.PHONY: demo test lint types schemas clean

demo: $(VENV)/demo.installed
	$(BIN)/ldpkit demo --out demo

test: lint types
ifeq ($(CHROMIUM)$(CI),)
	@echo "Chromium is not installed: the tests in tests/browser are left out"
	$(BIN)/python -m pytest -n 2 --dist worksteal --ignore tests/browser
else
	$(BIN)/python -m pytest -n 2 --dist worksteal
endif

lint: $(VENV)/dev.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.installed
	$(BIN)/mypy

schemas: $(VENV)/dev.installed
	$(BIN)/python -m schemas.json_schema

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ldpkit needs Python 3.11 or newer; say which with: make PYTHON=python3.12 …" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/%.installed: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing ldpkit[$*] into $(VENV) (once; about a minute)"
	$(PIP) --editable '.[$*]'
	@touch $@

clean:
	rm -rf $(VENV) demo build dist *.egg-info
