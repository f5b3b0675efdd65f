# Everything happens in .venv, build/ and target/. Needs Python 3.10 or later, Rust and make.

PYTHON ?= python3
# The snapshot that `make run` shows; empty means the demo.
SNAP ?=
# How long `make fuzz` runs each target.
FUZZ_SECONDS ?= 60
# What `make mutants` changes, the tests that should notice, how long it may take, and how many are tried.
WHAT ?=
TESTS ?=
MUTANTS_SECONDS ?= 900
SAMPLE ?=

VENV := .venv
PY := $(VENV)/bin/python
PROGRAM := $(VENV)/bin/snapviewer
MATURIN := VIRTUAL_ENV=$(abspath $(VENV)) $(PY) -m maturin
CARGO := cargo
FUZZ := cargo +nightly fuzz
# Memory that is kept rather than given back makes twice as many runs a second.
FUZZ_MALLOC := MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=100000000 MALLOC_TRIM_THRESHOLD_=400000000

# The extras `docs` and `test` of pyproject.toml, one requirement per line.
REQUIREMENTS := sed -n -e '/^docs = \[/,/^\]/s/^ *"\(.*\)",$$/\1/p' -e '/^test = \[/,/^\]/s/^ *"\(.*\)",$$/\1/p' pyproject.toml

SOURCES := Cargo.toml Cargo.lock pyproject.toml build.rs $(shell find src -name '*.rs' -o -name '*.[ch]')

# A path that changes would make PyO3 build again.
export PYO3_PYTHON := $(abspath $(PY))
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export SNAP

.PHONY: help run test docs bench fuzz fuzz-python screenshots fmt build compile rust-fmt rust-lint rust-test python-lint \
	python-types python-stubs python-test test-exhaustive mutants screen
.DELETE_ON_ERROR:

help:
	@echo 'make run             build (about a minute the first time) and open the demo snapshot in the window;'
	@echo '                     without a display, print a summary and draw a picture'
	@echo 'make run SNAP=path   the same with your snapshot'
	@echo 'make test            formatting, lints, types and all tests; what CI runs'
	@echo 'make test-exhaustive the tests that take minutes and seldom break'
	@echo 'make docs            build the documentation into build/site and check its links'
	@echo 'make bench           the benchmarks, as ratios to a baseline of the same run'
	@echo 'make fuzz            the fuzzers, FUZZ_SECONDS=$(FUZZ_SECONDS) each (needs nightly Rust and cargo-fuzz)'
	@echo 'make fuzz-python     only those of the readers that are written in Python (needs no nightly Rust)'
	@echo 'make mutants         WHAT=a module: change it in one place at a time, and list what no test notices'
	@echo 'make screenshots     redraw the pictures in docs/pictures (needs Xvfb, xdotool, chromium)'
	@echo 'make fmt             format Rust and Python'

run: build
	@mkdir -p build
	@set -e; from=$$SNAP; \
	if [ -z "$$from" ]; then \
		from=build/demo.pickle; \
		[ -e "$$from" ] || $(PROGRAM) demo -o "$$from" --oom; \
	fi; \
	if $(PY) -c 'import tkinter; tkinter.Tk().destroy()' 2>/dev/null; then \
		$(PROGRAM) open "$$from"; \
	else \
		echo 'no display to open the window on: the summary and the picture instead'; echo; \
		name=$$(basename "$$from"); picture=build/$${name%.*}.png; \
		$(PROGRAM) info "$$from"; echo; \
		$(PROGRAM) report "$$from" --top 8; echo; \
		$(PROGRAM) render "$$from" -o "$$picture" --force; \
	fi

# First what takes long and needs nothing of each other, side by side: the checks of Rust (dev
# profile), the compilation of the product (release), and the test tools, which are mostly a
# download. Then Python; its tests alone, because some of them watch a window.
test:
	@$(MAKE) --no-print-directory -j3 rust-fmt rust-test compile $(VENV)/.tools screen
	@$(MAKE) --no-print-directory python-lint python-types python-stubs docs
	@$(MAKE) --no-print-directory python-test
	@echo '== all good'

bench: build $(VENV)/.tools
	@$(PY) tests/benchmarks/run.py

fuzz: build
	@$(FUZZ) --version >/dev/null 2>&1 || { \
		echo 'make fuzz needs a nightly toolchain and cargo-fuzz; to install them:' \
			'rustup toolchain install nightly && cargo install cargo-fuzz'; exit 1; }
	@$(PY) fuzz/make_seeds.py fuzz/corpus
	@set -e; for target in $$($(FUZZ) list); do \
		echo "== fuzz $$target, $(FUZZ_SECONDS) s"; \
		case $$target in checkpoint*) words=checkpoint;; reader|pickle) words=pickle;; *) words=$$target;; esac; \
		case $$target in bundle) length=400000;; sql|filter) length=4096;; *) length=65536;; esac; \
		$(FUZZ_MALLOC) $(FUZZ) run --sanitizer none $$target -- -max_total_time=$(FUZZ_SECONDS) -max_len=$$length \
			-rss_limit_mb=4096 -timeout=30 -print_final_stats=1 $$(ls fuzz/$$words.dict 2>/dev/null | sed s/^/-dict=/); \
	done

	@$(MAKE) --no-print-directory fuzz-python

# The readers that are written in Python. They need no nightly toolchain.
fuzz-python: build $(VENV)/.tools
	@mkdir -p fuzz/artifacts
	@$(PY) -m pip install --quiet "atheris==3.0.0"
	@$(PY) fuzz/make_seeds.py fuzz/corpus
	@set -e; for target in events torchscript; do \
		echo "== fuzz $$target, $(FUZZ_SECONDS) s"; \
		$(PY) fuzz/fuzz_python.py $$target fuzz/corpus/$$target -max_total_time=$(FUZZ_SECONDS) -max_len=16384 \
			-rss_limit_mb=2048 -timeout=30 -artifact_prefix=fuzz/artifacts/ -print_final_stats=1; \
	done

mutants: build $(VENV)/.tools
	@[ -n "$(WHAT)" ] || { echo 'name a module: make mutants WHAT=python/snapviewer/events/analysis.py'; exit 2; }
	@$(PY) -m pip install --quiet "mutmut==3.8.1" "tree-sitter==0.26.0" "tree-sitter-rust==0.24.2"
	@PYTHONPATH=tests $(PY) -m mutants.run $(WHAT) $(TESTS) --seconds $(MUTANTS_SECONDS) \
		$(if $(SAMPLE),--sample $(SAMPLE))

screenshots: build $(VENV)/.tools
	@$(PY) docs/make_screenshots.py

fmt: $(VENV)/.tools
	$(CARGO) fmt
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

# The environment

build: $(VENV)/.built

# Only what a build needs, so that `make run` is quick on a fresh clone.
$(VENV)/.made: pyproject.toml
	@echo '== environment in $(VENV)'
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
		echo "snapviewer needs Python 3.10 or later; name one with PYTHON=…"; exit 1; }
	@[ -x $(PY) ] || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet "$$($(REQUIREMENTS) | grep '^maturin==')"
	@touch $@

$(VENV)/.tools: $(VENV)/.made
	@echo '== test tools'
	@$(REQUIREMENTS) > $(VENV)/test-requirements.txt
	@$(PY) -m pip install --quiet --no-compile -r $(VENV)/test-requirements.txt
	@touch $@

# The long part of a build. It installs nothing, so that pip can install other things meanwhile.
compile: $(VENV)/.made
	@echo '== compile'
	@$(MATURIN) build --release --locked --auditwheel skip --out $(VENV)/wheels

$(VENV)/.built: $(VENV)/.made $(SOURCES)
	@echo '== build (about a minute the first time)'
	@PIP_QUIET=1 $(MATURIN) develop --release --locked
	@touch $@

# The steps of `make test`

rust-fmt:
	@echo '== cargo fmt'
	@$(CARGO) fmt --check
	@$(CARGO) fmt --check --manifest-path fuzz/Cargo.toml

# With Python, which is all of the code; that it also builds without is for the tests to show.
rust-lint: $(VENV)/.made
	@echo '== cargo clippy'
	@$(CARGO) clippy --quiet --locked --all-targets --features python -- -D warnings

# After the lints: both want cargo's lock on target/debug.
rust-test: rust-lint
	@echo '== cargo test'
	@$(CARGO) test --quiet --locked

python-lint: $(VENV)/.tools
	@echo '== ruff'
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --quiet --check .
	@echo '== import-linter'
	@PYTHONPATH=python $(VENV)/bin/lint-imports --no-cache > $(VENV)/imports.log || { cat $(VENV)/imports.log; exit 1; }

python-types: $(VENV)/.tools build
	@echo '== mypy'
	@$(PY) -m mypy --no-error-summary

python-stubs: $(VENV)/.tools build
	@echo '== stubtest'
	@$(PY) -m mypy.stubtest snapviewer._core --mypy-config-file pyproject.toml --concise

# Warnings are errors: a link or an anchor that leads nowhere, a page outside of the navigation. The
# variable silences Material's notice of its successor.
docs: $(VENV)/.tools build
	@echo '== docs'
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet --strict
	@echo build/site/index.html

python-test: $(VENV)/.tools build screen
	@echo '== pytest'
	@$(PY) -m pytest --quiet --numprocesses 2 --dist loadfile -m "not exhaustive"

# What takes minutes and seldom breaks: every network that torchvision publishes a count for, every
# write that fails once, a hundred killed processes.
test-exhaustive: $(VENV)/.tools build
	@$(PY) -m pytest --quiet -m exhaustive

# What tests of the window need: a screen that nobody sees, a hand that types, letters. Without them
# these tests are skipped, and say so.
screen:
	@for tool in Xvfb xdotool fc-list; do command -v $$tool >/dev/null || missing=$$tool; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo '== a virtual screen'; \
		export DEBIAN_FRONTEND=noninteractive; \
		{ apt-get update && apt-get install -y --no-install-recommends \
			xvfb xdotool fontconfig fonts-dejavu-core; } >/dev/null 2>&1 || true; \
	fi
