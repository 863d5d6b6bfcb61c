# Two commands for everyone: `make demo` and `make test`. Each makes .venv first, when it is missing. CI runs
# `make test-all`.
VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
# What is imported is compiled then: of what is installed that is a part.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile --constraint constraints.txt
# What some tests need beyond Python: a browser, node, a compiler and a database server.
PROGRAMS := chromium chromedriver firefox-esr WebKitWebDriver Xvfb npm gcc
ABSENT := $(foreach program,$(PROGRAMS),$(if $(shell command -v $(program)),,$(program)))
ABSENT += $(if $(wildcard /usr/lib/postgresql/*/bin/postgres),,postgresql)
NPM_PACKAGES := tests/portable/node_modules/.package-lock.json

.PHONY: demo test test-all left-out lint types schemas page release site machines clean

demo: $(VENV)/demo.installed
	@# 4: all was written, and not all of it is to be trusted, as the page says: no error here.
	$(BIN)/ldpkit demo --out demo || [ $$? -eq 4 ]

# CI has them all; elsewhere the tests that need them are left out, and that is said.
ifeq ($(if $(CI),,$(strip $(ABSENT))),)
NPM := $(NPM_PACKAGES)
else
LEFT_OUT := browser collector portable
endif
PYTEST = $(BIN)/python -m pytest -n 3 --dist worksteal $(addprefix --ignore tests/,$(LEFT_OUT))

# Without the tests marked slow: long fits and studies of studies.
test: lint types $(NPM) left-out
	$(PYTEST) -m "not slow" --cov --cov-report=
	@echo "these tests run $$($(BIN)/coverage report --format=total) % of the packages' lines"

test-all: lint types $(NPM) left-out
	$(PYTEST)

left-out:
	@$(if $(LEFT_OUT),echo "not installed: $(ABSENT); left out of tests/: $(LEFT_OUT)",:)

lint: $(VENV)/dev.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.installed
	$(BIN)/mypy

schemas: $(VENV)/dev.installed
	$(BIN)/python -m schemas.json_schema
	$(BIN)/python -m schemas.javascript
	$(BIN)/python -m schemas.board

# The participant's page loads one script, page.js: participant.js with all that it imports. worker.js, of sender.js,
# sends for it what it could not.
page: $(NPM_PACKAGES)
	cd tests/portable && npm run --silent page -- --outfile=../../collector/assets/page.js
	cd tests/portable && npm run --silent worker -- --outfile=../../collector/assets/worker.js

# Into site/: the documentation, strictly: a link that leads nowhere is an error (not with --quiet, which hears none).
site: $(VENV)/dev.installed
	DISABLE_MKDOCS_2_WARNING=true $(BIN)/python -m mkdocs build --strict --config-file website/mkdocs.yml

# Into dist/: all that is published, built from the commit at hand, checked, with hashes. Publishes nothing.
release: $(VENV)/dev.installed $(NPM_PACKAGES)
	$(BIN)/python release.py

# As root, with a Debian mirror in reach: containers' and machines' files from nothing to a posterior.
machines: $(VENV)/dev.installed
	$(BIN)/python -m deploy.check

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ldpkit needs Python 3.11 or newer; say which with: make PYTHON=python3.12 …" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/%.installed: $(BIN)/python pyproject.toml ldp_client/pyproject.toml constraints.txt
	@echo "installing ldpkit[$*] into $(VENV) (once; about a minute)"
	$(PIP) --editable ./ldp_client --editable '.[$*]'
	@# An ldp-client that still had the command takes it away with it.
	@[ -x $(BIN)/ldpkit ] || $(PIP) --force-reinstall --no-deps --editable .
	@touch $@

$(NPM_PACKAGES): tests/portable/package-lock.json
	cd tests/portable && npm ci --silent --no-audit --no-fund --ignore-scripts

clean:
	rm -rf $(VENV) demo build dist site *.egg-info
