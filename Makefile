# Each target makes its own virtual environment (.venv) first. See README.md.
.PHONY: demo run test test-vllm soak fuzz bench check lock help
.DEFAULT_GOAL := help

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

demo:  ## everything on a simulated node: http://127.0.0.1:10770
	@.ci/python requirements.lock
	.venv/bin/pinchpoint demo $(ARGS)

run:  ## watch this machine: http://127.0.0.1:10770
	@.ci/python requirements.lock
	.venv/bin/pinchpoint run $(ARGS)

test:  ## all tests, the real Prometheus, Alertmanager, VictoriaMetrics and Chromium included
	@.ci/packages
	@.ci/python requirements.lock requirements-dev.lock
	.venv/bin/pytest $(ARGS)

test-vllm:  ## a real vLLM on the CPU through idle, moderate, KV-saturated and slot-limited (docs/vllm-real.md); 2.5 GB
	@.ci/python requirements.lock requirements-dev.lock
	.venv/bin/python -m tests.real_vllm $(ARGS)

soak:  ## the GPU source through every mishap, 200,000 cycles
	@.ci/packages
	@.ci/python requirements.lock requirements-dev.lock
	PINCHPOINT_SOAK_CYCLES=$${PINCHPOINT_SOAK_CYCLES:-200000} .venv/bin/pytest tests/sources/gpu/test_soak.py $(ARGS)

fuzz:  ## the reading of an engine's metrics against a million broken bodies
	@.ci/python requirements.lock requirements-dev.lock
	PINCHPOINT_FUZZ_INPUTS=$${PINCHPOINT_FUZZ_INPUTS:-1000000} .venv/bin/pytest tests/sources/engine/test_fuzz.py $(ARGS)

bench:  ## the figures of the README
	@.ci/packages
	@.ci/python requirements.lock requirements-dev.lock
	.venv/bin/python bench/scrape.py $(ARGS)

check:  ## lint, format, types, import contracts
	@.ci/python requirements.lock requirements-dev.lock
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

lock:  ## resolve the lock files anew (needs uv)
	uv pip compile -q --universal --generate-hashes --no-annotate --python-version 3.11 --custom-compile-command "make lock" pyproject.toml --extra uvloop --extra kubernetes -o requirements.lock
	uv pip compile -q --universal --generate-hashes --no-annotate --python-version 3.11 --custom-compile-command "make lock" --group build -o requirements-build.lock
	uv pip compile -q --universal --generate-hashes --no-annotate --python-version 3.11 --custom-compile-command "make lock" pyproject.toml --extra uvloop --extra kubernetes --group dev -o requirements-dev.lock
