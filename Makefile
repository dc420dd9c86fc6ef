# make check  set-up, lint, types, and the tests without servers, browsers, kills and trainings: under 3 minutes
# make test   everything a change must pass: set-up, lint, types, all tests
# make demo   set-up, then the whole pipeline on a demo world
# make bench  the benchmarks: ratios measured in one run
VENV ?= .venv
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
TORCH := 2.13.0
BIN := $(VENV)/bin
export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false

.PHONY: setup check test lint types fast browser pytest demo bench clean

setup: $(VENV)/.installed

# Without a GPU the small CPU build of torch is asked for first. pip finds it where it is configured to look for PyTorch's
# own CPU wheels; elsewhere the default build is installed, which works on CPUs too.
$(VENV)/.installed: pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	@if command -v nvidia-smi >/dev/null 2>&1; then $(BIN)/pip install -q "torch==$(TORCH)"; \
	else $(BIN)/pip install -q "torch==$(TORCH)+cpu" 2>/dev/null || $(BIN)/pip install -q "torch==$(TORCH)"; fi
	$(BIN)/pip install -q -e ".[dev,offline]"
	$(BIN)/pip check
	@touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

# tests/conftest.py says which tests are slow.
fast: setup
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m "not slow"

# Pages are tested in a real browser. On Debian it is installed; elsewhere those tests are skipped if there is none.
browser:
	@if [ -n "$$VINA_BROWSER" ] || command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null 2>&1; then :; \
	elif command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq chromium >/dev/null; \
	else echo "there is no Chromium: tests of pages are skipped (VINA_BROWSER names one)"; fi

# A file stays in one process, for its fixtures; in this order the longest file comes first and the shortest last.
pytest: setup browser
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

check: lint types fast

test: lint types pytest

demo: setup
	$(BIN)/vina run --preset demo --store demo-store

bench: setup
	$(BIN)/pytest tests/benchmarks --override-ini addopts="-q -s"

clean:
	rm -rf $(VENV) demo-store build *.egg-info
