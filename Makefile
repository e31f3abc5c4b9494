# Two commands: `make demo` sets up and runs the main job, `make test` sets up and tests.
# Both need Python 3.11 to 3.13 and make, nothing else; what they install lies in .venv.

VENV := .venv
# The versions that were tested together.
LOCK := $(addprefix --constraint ,$(wildcard requirements.lock))
RUN := $(VENV)/bin
DEMO_ARGS ?=
TEST_ARGS ?=
MUTATE_ARGS ?=
PICTURES_ARGS ?=
FAULTS_ARGS ?=
FIGURES_ARGS ?=
TRUTH_ARGS ?=
BASE ?=
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	if $$p -c 'import sys; raise SystemExit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; \
	then echo $$p; break; fi; done)

.PHONY: help demo test test-all test-touched check docs pictures mutate figures papers weaknesses lock lint types collect format app clean faults truth
.DEFAULT_GOAL := help

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo: $(VENV)/.ready ## Audit 1,797 real digits with known wrong labels, then open the app (DEMO_ARGS=--no-app: no app)
	$(RUN)/auditor demo $(DEMO_ARGS)

# What is imported is compiled once, also where PYTHONDONTWRITEBYTECODE is set: every process that the tests start
# would compile all of it, which is half of what importing torch or timm takes.
test test-all test-touched check: export PYTHONDONTWRITEBYTECODE :=

PYTEST := OMP_NUM_THREADS=1 $(RUN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder -p no:schemathesis

test: $(VENV)/.ready-dev ## Check style and types and run the tests, without the second tier
	@$(MAKE) --no-print-directory --jobs=3 lint types collect
	$(PYTEST) -m "not world" $(TEST_ARGS)

test-all: $(VENV)/.ready-dev ## The same with the second tier (tests/world.py): other systems, services, people, faults
	@$(MAKE) --no-print-directory --jobs=3 lint types collect
	$(PYTEST) $(TEST_ARGS)

test-touched: $(VENV)/.ready-dev ## Of the second tier what is for the last ten commits, or for all since BASE=COMMIT
	@touched=$$($(RUN)/python -m tests.world $(BASE)) || exit 1; \
	if [ -z "$$touched" ]; then echo "No test of the second tier is for what changed."; exit; fi; \
	echo "Of the second tier:" $$touched; $(PYTEST) -p tests.world $$touched $(TEST_ARGS)

check: $(VENV)/.ready-dev lint types ## Check style, types and the tests that train nothing
	OMP_NUM_THREADS=1 $(RUN)/python -m pytest -n logical --dist worksteal -p no:schemathesis -m "not trains" $(TEST_ARGS)

docs: $(VENV)/.ready-dev ## Build the documentation as a site in build/site
	$(RUN)/python -m tools.reference
	PYTHONPATH=. $(RUN)/python -m mkdocs build --strict --quiet

pictures: $(VENV)/.ready-dev ## Take the pictures of all screens again (build/pictures; the best of them: docs/images)
	PYTHONPATH=. OMP_NUM_THREADS=1 $(RUN)/python -m tools.pictures $(PICTURES_ARGS)

mutate: $(VENV)/.ready-dev ## Change the engines' code one line at a time and list what no test notices (hours; MUTATE_ARGS="--sample 50")
	OMP_NUM_THREADS=1 $(RUN)/python -m qa.mutation $(MUTATE_ARGS)

weaknesses: $(VENV)/.ready-dev ## Ask pip-audit for known weaknesses of the installed packages (asks the index about each)
	$(RUN)/python -m tools.dependencies

figures: $(VENV)/.ready-dev ## Measure every page of benchmarks/results again; goes on where it was stopped (days; FIGURES_ARGS="--only guess")
	PYTHONPATH=. $(RUN)/python -m benchmarks.figures $(FIGURES_ARGS)
	$(RUN)/python -m tools.reference

papers: $(VENV)/.ready-dev ## List every table and figure of the four papers with what was run again
	$(RUN)/python -m benchmarks.papers.index

lock: $(VENV)/.ready-dev ## Choose new versions for CI and the container, within the ranges of pyproject.toml
	$(RUN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --quiet --upgrade \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file requirements.lock

faults: $(VENV)/.ready-dev ## Kill, damage and misfeed the product; goes on where it was stopped (FAULTS_ARGS="--minutes 30")
	OMP_NUM_THREADS=1 PYTHONPATH=. $(RUN)/python -m qa.faults.campaign $(FAULTS_ARGS)

truth: $(VENV)/.ready-dev ## Let 200 simulated owners work and read every surface after each step (hours; TRUTH_ARGS="--seeds 20")
	OMP_NUM_THREADS=1 PYTHONPATH=. $(RUN)/python -W ignore -m qa.truth $(TRUTH_ARGS)

lint: $(VENV)/.ready-dev ## Check style
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .

types: $(VENV)/.ready-dev ## Check types
	$(RUN)/mypy

# Everything, also what `make test` leaves out: it can be imported at least. Before the four processes that test,
# which would each compile it at the same time.
collect: $(VENV)/.ready-dev
	@OMP_NUM_THREADS=1 $(RUN)/python -m pytest --collect-only -p no:schemathesis $(TEST_ARGS) >$(VENV)/.collected || { cat $(VENV)/.collected; exit 1; }

format: $(VENV)/.ready-dev ## Format the code
	$(RUN)/ruff format .
	$(RUN)/ruff check --fix .

app: $(VENV)/.ready ## Open the app
	$(RUN)/auditor app

clean: ## Remove what was installed (datasets and reviews are kept)
	rm -rf $(VENV)

$(VENV)/bin/pip:
	@test -n "$(PYTHON)" || { echo "Python 3.11 to 3.13 is missing; install it (Debian: apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) lacks venv; on Debian: apt-get install $$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: $(VENV)/bin/pip pyproject.toml
	$(RUN)/python tools/install.py $(LOCK) -e '.[all]'
	@touch $@

$(VENV)/.ready-dev: $(VENV)/bin/pip pyproject.toml
	$(RUN)/python tools/install.py $(LOCK) -e '.[all,dev,docs]'
	@touch $(VENV)/.ready $@
