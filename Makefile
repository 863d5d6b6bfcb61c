# Two commands for everyone: `make demo` and `make test`. Each makes .venv first, when it is missing. CI runs
# `make test-all`.
# Each test that starts Python would compile all modules anew.
export PYTHONDONTWRITEBYTECODE :=
VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
# What is imported is compiled then: of what is installed that is a part.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile --constraint constraints.txt
NPM_PACKAGES := tests/portable/node_modules/.package-lock.json
# Tests that need a program skip themselves where it is absent (tests/kit/programs.py); so do those of node.
NPM := $(if $(shell command -v npm),$(NPM_PACKAGES))
# A file's tests stay in one process, so that its browser, server or fits are made once. Slow files go first.
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder -n

.PHONY: demo test test-all coverage lint types schemas page release site machines bare native clean

demo: $(VENV)/demo.installed
	@# 4: all was written, and not all of it is to be trusted, as the page says: no error here.
	@# A result is a new folder.
	rm -rf demo
	$(BIN)/ldpkit demo || [ $$? -eq 4 ]

# Needs Python and make alone. Without the tests marked slow: long fits, power cuts, other programs' servers.
test: lint types $(NPM)
	$(PYTEST) 2 -m "not slow"

# Installs what documentation, releases, Spark and cloud storage need too, and runs every test.
# A third process works while others wait for browsers and servers.
test-all: $(VENV)/dev.installed lint types $(NPM)
	$(PYTEST) 3

# Which lines and branches the tests of `make test` run.
coverage: $(VENV)/dev.installed $(NPM)
	$(PYTEST) 2 -m "not slow" --cov --cov-branch --cov-report=
	$(BIN)/coverage report --skip-covered

lint: $(VENV)/test.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/test.installed
	$(BIN)/mypy

# As root, with a Debian mirror and PyPI: the core in Kotlin, in Swift and for other processors. Compilers (4 GB) go to
# ~/.cache/ldpkit-native. CI does not run it.
native: $(VENV)/test.installed
	$(BIN)/python -m tests.native.phones.compilers
	$(BIN)/python -m pytest -v $(addprefix tests/native/phones/,wrappers.py objects.py)

schemas: $(VENV)/test.installed
	$(BIN)/python -m schemas.json_schema
	$(BIN)/python -m schemas.javascript

# What the collector serves: the participant's page, the worker that sends for it what it could not, and for other
# sites the element and the library.
page: $(NPM_PACKAGES)
	cd tests/portable && for pair in collector/pages/assets/participant:page collector/pages/assets/sender:worker \
	    js/index:ldpkit js/element:element; do \
	  npm run --silent bundle -- ../../$${pair%:*}.js --outfile=../../collector/pages/assets/$${pair#*:}.js || exit; done

# Into site/: the documentation, strictly: a link that leads nowhere is an error (not with --quiet, which hears none).
site: $(VENV)/dev.installed
	DISABLE_MKDOCS_2_WARNING=true $(BIN)/python -m mkdocs build --strict --config-file website/mkdocs.yml

# Into dist/: all that is published, built from the commit at hand, checked, with hashes. Publishes nothing.
release: $(VENV)/dev.installed $(NPM_PACKAGES)
	$(BIN)/python release.py

# As root, with a Debian mirror in reach: containers' and machines' files from nothing to a summary.
machines: $(VENV)/dev.installed
	$(BIN)/python -m tests.deploy.check

# As root, with a Debian mirror in reach: `make test` on a Debian that has Python and make and nothing else.
bare: $(VENV)/test.installed
	$(BIN)/python -m tests.deploy.bare

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

# One pip at a time.
$(VENV)/dev.installed: $(VENV)/test.installed

$(NPM_PACKAGES): tests/portable/package-lock.json
	cd tests/portable && npm ci --silent --no-audit --no-fund --ignore-scripts

clean:
	rm -rf $(VENV) demo build dist site *.egg-info
