# Needs Python >= 3.11, git and make; everything else is installed into $(VENV).
#
#   make demo     the indexing maps of every fusion of an attention module
#   make test     the tests, documentation and notebooks; with COVERAGE=1 also the least covered modules
#   make slow     the slow tests, which `make test` leaves out, and all cases of those that it samples
#   make quick    `make test` with fewer random examples
#   make check    formatting, lint, strict types, and no condition on an `Unknown`
#   make format   repair formatting and what lint can repair
#   make docs     write the pages that are generated
#   make pictures  draw the pictures of the documentation
#   make site     the documentation site in build/site; its first page is index.html
#   make notebooks  execute the notebooks and write their outputs; Chromium draws pictures that changed
#   make wheel    a wheel in dist/ with compiled modules; needs a C compiler
#   make check-wheels  this wheel and the pure one, each installed into an environment of its own
#   make test-compiled   the tests with that wheel
#   make fuzz     a million mutants of small modules, each with questions to the analysis (FUZZ_COUNT, FUZZ_SEED)
#   make figures  measure all figures of README.md and docs/ and write them there; needs half an hour;
#                 fails if a time relative to a peer is more than 15 % above that of the last release
#   make lock     the exact versions that .ci/run installs, in requirements-ci.lock
#   make clean    remove $(VENV) and every cache

VENV ?= .venv
EXTRAS ?= dev,xla
JOBS ?= auto
FUZZ_COUNT ?= 1000000
FUZZ_SEED ?= 20000
# COVERAGE=1 about doubles the time of the tests.  CONSTRAINTS names a file of exact versions.
COVERAGE ?=
CONSTRAINTS ?=

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)

# Tests start hundreds of processes: without cached bytecode, each compiles all modules that it imports.
export PYTHONDONTWRITEBYTECODE :=

BIN := $(VENV)/bin
CONSTRAINED := $(if $(CONSTRAINTS),PIP_CONSTRAINT=$(abspath $(CONSTRAINTS)))
PIP := $(CONSTRAINED) $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := python -m pytest -n $(JOBS) --dist worksteal
DEMO := examples/attention.opt.hlo
COMPILED := build/compiled
LOCK := requirements-ci.lock
PACKAGES := hlo indexing simplifier
SOURCES := pyproject.toml README.md LICENSE $(shell find $(PACKAGES) docs/man docs/errors docs/glossary.md -type f -not -path '*/__pycache__/*')
# The environment of the tests serves the demo as well.
INSTALLED = $(firstword $(wildcard $(VENV)/.develops) $(VENV)/.runs)

.PHONY: demo test slow quick check format docs site pictures notebooks fuzz figures wheel check-wheels compiled test-compiled lock clean
.DELETE_ON_ERROR:

demo: $(INSTALLED)
	@echo "make: printing the indexing maps of every fusion of $(DEMO)"
	$(BIN)/hlo-indexing maps $(DEMO) --opcode fusion
	@echo "make: docs/notation.md explains the maps, README.md has more examples; then try:"
	@echo "  $(BIN)/hlo-indexing summary $(DEMO)"
	@echo "  $(BIN)/hlo-indexing help"

test: $(VENV)/.develops
	FUZZ=$(or $(FUZZ),0.3) $(BIN)/$(PYTEST) -m "not slow" $(if $(COVERAGE),--cov --cov-report=)
	@test -z "$(COVERAGE)" || $(BIN)/coverage report --sort=cover | sed -n '1,22p;$$p'

slow: $(VENV)/.develops
	$(BIN)/$(PYTEST) -m "slow or sampled"

quick: $(VENV)/.develops
	FUZZ=$(or $(FUZZ),0.2) $(BIN)/$(PYTEST) -m "not slow"

check: $(VENV)/.develops
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/python -m tests.unknown_conditions

format: $(VENV)/.develops
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

docs: $(INSTALLED)
	$(BIN)/hlo-indexing ops --format markdown > docs/coverage.md
	$(BIN)/python -c 'from simplifier.laws_page import page; print(page(), end="")' > docs/laws.md
	$(BIN)/python -c 'from indexing.equivalence.values.laws_page import page; print(page(), end="")' > docs/value_laws.md
	$(BIN)/python -c 'from indexing.cli.manual import write_pages; write_pages("docs/man")'
	$(BIN)/python -m benchmarks.history

pictures: $(VENV)/.develops
	$(BIN)/python -m tests.drawing.gallery

site: $(VENV)/.documents
	$(BIN)/python -m docs.pages build/site-sources
	$(BIN)/python -m sphinx -q -W --keep-going -c docs -d build/site-doctrees build/site-sources build/site

notebooks: $(VENV)/.develops
	$(BIN)/python -m tests.notebooks

fuzz: $(VENV)/.develops
	$(BIN)/python -m tests.analysis_fuzz --count $(FUZZ_COUNT) --seed $(FUZZ_SEED)

figures: $(VENV)/.develops compiled
	$(BIN)/python -m benchmarks

# From copies: compiled modules hide their sources, wherever they lie beside them.
COPY_SOURCES = rm -rf build/sources && mkdir -p build/sources/docs \
	&& cp -R pyproject.toml README.md LICENSE $(PACKAGES) build/sources && cp -R docs/man docs/errors docs/glossary.md build/sources/docs
PIP_WHEEL = $(CONSTRAINED) $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps
BUILD_WHEEL = $(COPY_SOURCES) && rm -rf dist \
	&& HATCH_BUILD_HOOKS_ENABLE=1 $(PIP_WHEEL) --wheel-dir dist build/sources && touch build/.wheel

wheel: build/.wheel

build/.wheel: $(SOURCES) | $(BIN)/python
	$(BUILD_WHEEL)

check-wheels: build/.wheel
	rm -rf build/interpreted && $(COPY_SOURCES)
	$(PIP_WHEEL) --wheel-dir build/interpreted build/sources
	$(call CHECK_WHEEL,compiled,dist)
	$(call CHECK_WHEEL,interpreted,build/interpreted)

define CHECK_WHEEL
	rm -rf build/environment
	$(BIN)/python -m venv build/environment
	$(CONSTRAINED) build/environment/bin/python -m pip install --quiet --disable-pip-version-check $(2)/*.whl
	build/environment/bin/python .ci/check_wheel.py $(1)
endef

compiled: build/.wheel $(VENV)/.develops
	rm -rf $(COMPILED)
	$(PIP) --no-deps --target $(COMPILED) dist/*.whl
	cp -R .ci .github pyproject.toml .pre-commit-config.yaml $(LOCK) Makefile LICENSE CITATION.cff *.md benchmarks changelog.d docs examples notebooks tests $(COMPILED)

# A compiled function differs from its source in the types that it accepts, in overflow and in recursion.
# So all fast tests run of the rooms that call the compiled modules most, with most kinds of arguments,
# and one in four tests of the others, chosen by a hash of their names.
test-compiled: compiled
	cd $(COMPILED) && FUZZ=$(or $(FUZZ),0.3) $(abspath $(BIN))/$(PYTEST) -m "not slow" --one-in 4 tests

# Everything that CI installs, and what builds our wheels, as an environment made anew resolves it.
lock: | $(BIN)/python
	rm -rf build/lock
	$(BIN)/python -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check \
		-e '.[$(EXTRAS),dask,docs,triton,browser,tpu,cuda]' hatchling hatch-mypyc
	build/lock/bin/python -m pip list --format freeze --exclude-editable \
		--exclude pip --exclude setuptools > $(LOCK)

clean:
	rm -rf $(VENV) .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it with PYTHON=..." >&2; exit 1; }
	@echo "make: creating a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# The stamps make a second run start at once.  Python compiles modules when it first imports them: to
# compile all of those that are installed takes three times as long as to install them.
$(VENV)/.runs: pyproject.toml | $(BIN)/python
	@echo "make: installing hlo-indexing and what it needs (numpy, sympy, islpy, ..) into $(VENV)"
	@$(PIP) --no-compile -e .
	@touch $@

$(VENV)/.develops: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[$(EXTRAS)]'
	@touch $@ $(VENV)/.runs

$(VENV)/.documents: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[$(EXTRAS),docs]'
	@touch $@ $(VENV)/.runs $(VENV)/.develops
