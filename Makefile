# Every target works with any Python >= 3.11, in a virtual environment or not: make test PYTHON=...
PYTHON ?= python3
CI_WARNINGS ?= OFF
EXTRAS ?= dev test
export PATH := $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("scripts"))'):$(PATH)

PY_DIRS := $(wildcard framework adapters strategies examples tests)
CXX_FILES := $(wildcard framework/core/*.[ch]pp framework/core/*/*.[ch]pp tests/core/*.[ch]pp)
STUBGEN := $(PYTHON) -m nanobind.stubgen -q -m hft._core

.DEFAULT_GOAL := help
.PHONY: help tools build check types format stub test core-test tsan bench bench-peer bench-import bench-inference bench-latency bench-execution lstm-mm nightly clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## */\1\t/p' Makefile | expand -t 12

tools:  ## install what building and checking need from PyPI; EXTRAS="dev test" by default
	$(PYTHON) -m pip install -q $$($(PYTHON) -c 'import tomllib; \
	  extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	  print(*(d for e in "$(EXTRAS)".split() for d in extras[e] if "[" not in d))')

build:  ## editable install; again after a change of C++, seconds with ccache
	CMAKE_ARGS="$(CMAKE_ARGS) -DHFT_WERROR=$(CI_WARNINGS)" \
	  $(PYTHON) -m pip install -q --no-build-isolation -e .

check: types  ## formatters, linters, types, and the stub against the built module
	ruff format --check $(PY_DIRS)
	ruff check $(PY_DIRS)
	clang-format --dry-run -Werror $(CXX_FILES)
	$(STUBGEN) -o build/_core.pyi
	diff -u framework/hft/_core.pyi build/_core.pyi

# mypy follows folders, not the build's mapping of adapters/ to hft.adapters.
types:  ## mypy --strict on framework/hft and adapters
	@rm -rf build/types && mkdir -p build/types/hft
	@ln -s $(CURDIR)/framework/hft/* build/types/hft/
	@ln -s $(CURDIR)/adapters build/types/hft/adapters
	mypy

format:  ## rewrite Python and C++ as the formatters want it
	clang-format -i $(CXX_FILES)
	ruff format $(PY_DIRS)
	ruff check --fix $(PY_DIRS)

stub:  ## write framework/hft/_core.pyi anew from the built module
	$(STUBGEN) -o framework/hft/_core.pyi

test:  ## Python tests
	$(PYTHON) -m pytest -ra $(PYTEST_FLAGS)

build/core-%: FORCE
	@cmake -S framework -B $@ -G Ninja -DCMAKE_BUILD_TYPE=Debug -DHFT_TESTS=ON \
	  -DHFT_SANITIZE=$(SANITIZE) --log-level=WARNING
	@cmake --build $@
FORCE:

core-test: SANITIZE = address,undefined
core-test: build/core-asan  ## C++ tests under the address and undefined-behaviour sanitizers
	build/core-asan/tests/core_tests

tsan: SANITIZE = thread
tsan: build/core-tsan  ## C++ tests of the rings under the thread sanitizer
	build/core-tsan/tests/core_tests --source-file='*test_ring*'

bench:  ## our own timings: ns an event, with a line on the machine
	$(PYTHON) tests/bench/own.py

bench-peer:  ## against hftbacktest on one feed: extra "peer", or PEER_FLAGS="--peer-python ..."
	$(PYTHON) tests/bench/peer.py $(PEER_FLAGS)

bench-import:  ## rows/s of every importer, against the bare read of its file
	$(PYTHON) tests/bench/imports.py

bench-inference:  ## a step of every backend and form, warm and cold, against what the machine allows
	$(PYTHON) tests/bench/inference.py $(BENCH_FLAGS)

bench-execution:  ## all execution models on against all off: extra "peer", or PEER_FLAGS as above
	$(PYTHON) tests/bench/execution.py $(PEER_FLAGS)

bench-latency:  ## what resampling does to clusters of latency, against the truth
	$(PYTHON) tests/bench/latency_table.py

lstm-mm:  ## tiers and parts of strategies/lstm_mm.bundle anew, from a synthetic market; FULL stays
	$(PYTHON) backtests/lstm_mm_bundle.py $(LSTM_MM_FLAGS)

nightly: core-test tsan  ## all tests with 200 times the examples: properties, damaged files
	$(PYTHON) -m pytest -ra --hypothesis-profile=nightly $(PYTEST_FLAGS)

clean:  ## remove what the build wrote
	rm -rf build/cp* build/core-* build/types build/_core.pyi dist
