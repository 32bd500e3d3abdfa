# Two commands: `make run` sets up and runs the embedded default, `make test` sets up and tests.
SHELL := /bin/sh
BIN := .venv/bin
SEED ?= 0
LARGE ?= results/large$(if $(filter-out 0,$(SEED)),-$(SEED))
PYTEST := $(BIN)/python -m pytest --durations=10
RUN := envs/requirements.txt
TEST := $(RUN) envs/requirements-extra.txt envs/requirements-slurm.txt envs/requirements-test.txt

.PHONY: help setup run test all-tests test-slurm unit lint style types bench seeds large evidence audit report rulegraph environment clean

help:
	@echo "make run     set up, and run both embedded studies (some minutes on two cores)"
	@echo "make test    set up, and run lint and all tests"
	@echo "make setup   install the pinned packages of runs and tests into .venv"
	@echo "make unit    set up, and run the tests of the library, without studies"
	@echo "make test-slurm  install Debian's Slurm where it is missing (as root), and test studies on it"
	@echo "make bench   measure speed and memory, printed as ratios"
	@echo "make seeds   run the embedded studies with three seeds and write docs/embedded-results.md"
	@echo "make large   run the studies of 120 networks each, into results/large (half an hour or more); SEED=1: other recipes"
	@echo "make evidence  write docs/evidence.md from LARGE='results/large results/large-1 ...'; TESTBED=robustness_top1s.csv renews that section too"
	@echo "make audit   recompute the paper's printed numbers and write docs/reproduction.md"
	@echo "make report  pack the figures and tables of the last run into report.zip"
	@echo "make rulegraph  draw docs/images/rulegraph.png (needs graphviz)"
	@echo "make environment  write envs/stamp.yaml from the pinned packages"
	@echo "make clean   remove results"

run:
	@envs/install $(RUN)
	$(BIN)/snakemake --cores 8 --resources gpu=1

setup:
	@envs/install $(TEST)

# Types are checked while the tests begin. A file's tests stay on one worker, so that its fixtures
# are made once. One of the workers begins with Slurm's, which wait most of the time.
test: style
	@$(MAKE) --no-print-directory -j 2 types all-tests

all-tests: setup
	$(PYTEST) tests -n 3 --dist loadfile --no-loadscope-reorder

test-slurm: setup
	@envs/slurm
	$(PYTEST) tests/slurm -n 0 -rs

unit: setup
	$(PYTEST) tests --ignore tests/workflow --ignore tests/end_to_end --ignore tests/slurm -n 2

lint: style types

style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules
	PYTHONPATH=workflow/scripts $(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/snakemake --lint --config "studies=[phantom,digits]"

types: setup
	$(BIN)/mypy

bench:
	@envs/install $(RUN)
	PYTHONPATH=workflow/scripts $(BIN)/python -m benchmarks

seeds:
	@envs/install $(RUN)
	PYTHONPATH=workflow/scripts $(BIN)/python -m benchmarks.seeds

# Continues where it was when it is stopped: run it again. SEED=1 draws other recipes, into results/large-1.
large:
	@envs/install $(RUN)
	@mkdir -p $(LARGE)/zoo
	PYTHONPATH=workflow/scripts $(BIN)/python -m benchmarks.recipes --seed $(SEED) --into $(LARGE)/zoo
	$(BIN)/snakemake --cores 2 --resources gpu=1 --config 'studies=[digits_large,phantom_large]' results=$(LARGE) 'folders={zoo: $(LARGE)/zoo}'

evidence:
	@envs/install $(RUN)
	PYTHONPATH=workflow/scripts $(BIN)/python -m benchmarks.evidence --results $(LARGE) $(if $(TESTBED),--testbed $(TESTBED))

audit:
	@envs/install $(RUN)
	$(BIN)/snakemake --cores 2 audit
	cp results/audit/reproduction.md docs/reproduction.md

report:
	@envs/install $(RUN)
	$(BIN)/snakemake --cores 1 --report report.zip

rulegraph:
	@envs/install $(RUN)
	$(BIN)/snakemake --cores 1 --rulegraph --config 'studies=[phantom]' 2>/dev/null | tred | dot -Tpng -Gdpi=80 -o docs/images/rulegraph.png

environment:
	@{ printf '%s\n' '# Written by `make environment` from requirements.txt, for `--software-deployment-method conda`.' \
	  'channels: [conda-forge, nodefaults]' 'dependencies:' '  - python =3.11' '  - pip' '  - pip:'; \
	  grep -v '^#' $(RUN) | sed 's/^/      - /'; } > envs/stamp.yaml

clean:
	rm -rf results
