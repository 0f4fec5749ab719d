# On a machine with Python 3.11+ and make, each target sets up what it needs in .venv; second runs skip the set-up.
PYTHON ?= python3
BIN := .venv/bin
# Python compiles what is imported, once, if it may keep the result; to compile all that is installed takes two minutes.
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint requirements.lock
unexport PYTHONDONTWRITEBYTECODE
# Twice the cores: many tests wait for servers and browsers.
WORKERS = $(shell $(PYTHON) -c 'import os; print(2 * os.cpu_count())')

.PHONY: demo radcliq demo-curate test check unit quick coverage mutants bench bench-peers docs site clean lock

demo: .venv/.ready
	$(BIN)/medthink demo

# Raw phantom cases with faults of every kind, the benchmark built from them, and where each fault was caught.
demo-curate: .venv/.ready
	rm -rf demo-curate
	$(BIN)/medthink data synth -o demo-curate --raw --count 240 --seed 4
	$(BIN)/medthink curate build demo-curate/plan.toml
	$(BIN)/python bench/check_planted.py demo-curate

# RadCliQ with PyTorch of a chosen build: `make radcliq TORCH_INDEX=…` takes torch, and nothing else, from that index (the
# CPU build's address is named under "Get started" at pytorch.org; it is a fraction of the default one's size).
radcliq: .venv/.ready
	$(if $(TORCH_INDEX),$(PIP) --index-url $(TORCH_INDEX) --no-deps torch,)
	$(PIP) --editable '.[radcliq]'

test: .venv/.ready-dev
	@$(MAKE) --no-print-directory --jobs 2 check .venv/.compiled
	@$(MAKE) --no-print-directory unit

check: .venv/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers auto
	$(BIN)/lint-imports

unit: .venv/.ready-dev
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

# A minute's worth of every room: no torch, no browser, no PostgreSQL, and no file of tests that takes seconds.
quick: check
	$(BIN)/pytest -n auto --dist worksteal --quick tests/unit tests/snapshot

# The lines and branches of src/ that the tests run, child processes included; twice the time of `make unit`.
coverage: .venv/.ready-dev
	$(PIP) coverage
	rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest -n $(WORKERS) --dist worksteal
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered

# Changes of the product that no test notices: `make mutants SAMPLE=40` draws so many of each target. Hours without.
mutants: .venv/.ready-dev
	$(PIP) coverage
	$(BIN)/python tests/mutants.py $(if $(SAMPLE),--sample $(SAMPLE),) $(if $(SEED),--seed $(SEED),)

bench: .venv/.ready-dev
	$(BIN)/python -m bench

# The same job by other harnesses, which are installed apart in .venv-peers.
bench-peers: .venv/.ready-dev
	$(BIN)/python bench/peers.py

docs: .venv/.ready-dev
	$(BIN)/python docs/build_commands.py

# The documentation as a site in site/, from the README and docs/. With --quiet, mkdocs would overlook its warnings.
site: .venv/.ready-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# The versions that the tests passed with; names and numbers only, so that any index can serve them.
lock: .venv/.ready-dev
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+cpu$$//' > requirements.lock

clean:
	rm -rf .venv .venv-peers demo demo-curate site

# The pip that comes with Python 3.11 takes three times the CPU of a new one to choose versions.
$(BIN)/python:
	$(PYTHON) -m venv --upgrade-deps .venv

.venv/.ready: pyproject.toml requirements.lock | $(BIN)/python
	$(PIP) --editable '.[web,board]'
	touch $@

# Everything that `.venv/.ready` has, and more: one installation instead of two.
.venv/.ready-dev: pyproject.toml requirements.lock tests/install_tools.sh | $(BIN)/python
	$(PIP) --editable '.[dev,web,board,radcliq,dicom,ocr,ray,inspect]'
	sh tests/install_tools.sh
	touch .venv/.ready $@

# What the tests import, compiled once while the types are checked: else every worker would compile it for itself.
.venv/.compiled: .venv/.ready-dev
	-@$(BIN)/pytest --collect-only -qq > /dev/null 2>&1
	-@$(BIN)/python -W ignore tests/import_heavy.py
	@touch $@
