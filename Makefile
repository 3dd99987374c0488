# make run: the showcase; make test: the tests; make check: lint, types and import contracts;
# make docs: the site, in build/html; make docs-cache: its figures and verdicts that are missing.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test check validate bench browser docs docs-cache clean

run: .venv/run.stamp
	$(BIN)/attdyn compare positional_attention

test: .venv/test.stamp
	$(BIN)/pytest -n 2 --dist loadfile

check: .venv/lint.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

validate: .venv/test.stamp
	$(BIN)/pytest -m long

bench: .venv/bench.stamp
	$(BIN)/pytest tests/benchmarks -m benchmark_run -s

docs: .venv/docs.stamp
	$(BIN)/python docs/site/build.py

docs-cache: .venv/docs.stamp
	$(BIN)/python docs/site/cache.py

browser: .venv/browser.stamp
	$(BIN)/pytest tests -m browser

.venv/made.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv --upgrade-deps .venv
	@touch $@

.venv/run.stamp: .venv/made.stamp setup.cfg pyproject.toml
	$(BIN)/pip install --quiet --editable .
	@touch $@

.venv/test.stamp: .venv/run.stamp
	$(BIN)/pip install --quiet --editable '.[test]'
	@touch $@

.venv/lint.stamp: .venv/run.stamp
	$(BIN)/pip install --quiet --editable '.[lint]'
	@touch $@

.venv/bench.stamp: .venv/test.stamp
	$(BIN)/pip install --quiet --editable '.[test,compare]'
	@touch $@

.venv/docs.stamp: .venv/run.stamp
	$(BIN)/pip install --quiet --editable '.[docs]'
	@touch $@

.venv/browser.stamp: .venv/test.stamp
	$(BIN)/pip install --quiet --editable '.[test,browser]'
	@touch $@

clean:
	rm -rf .venv results build
