# Every target sets up what it needs and is quick when nothing changed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed-dev
RUN_STAMP := $(VENV)/.installed-runtime
GENERATOR := .venv-client/.installed
SITE := .venv-docs/.installed
AUDITOR := .venv-audit/.installed
SITE_SCRIPTS := requirements/site/node_modules/.package-lock.json
PLAYER := tests/player/node_modules/.package-lock.json
SUITES ?= bookworm trixie
PREVIOUS ?= HEAD~1
RUNNER := --dist loadfile --no-loadscope-reorder

.PHONY: run test test-long test-all gather check wheel deb sbom audit coverage install-trial bench bench-compare cuts power-cuts soak outage outage-month shared-areas many-sites idle-traffic seeds mutations fuzz fuzz-parsers fuzz-compiled docs pictures format lock clean debian

# Dependencies are installed hash-checked; the project itself is linked in place, offline.
$(RUN_STAMP): pyproject.toml drivers/rtsp/_fast.c requirements/runtime.lock requirements/build.lock
	@$(PYTHON) -c 'import sys; sys.exit("edge-gateway needs Python 3.11 or newer; set PYTHON=...") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/build.lock -r requirements/runtime.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

$(STAMP): $(RUN_STAMP) requirements/dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	touch $@

run: $(RUN_STAMP)  ## start the demo site with traffic (page on :8480)
	$(BIN)/edge-gateway demo $(DEMO)

debian:  ## real peers for the tests: GStreamer's RTSP server, ffmpeg, Chromium
	@scripts/debian-packages

# A JavaScript HLS player for the tests' browser, by its locked hash. Without npm the tests that need it say so.
$(PLAYER): tests/player/package-lock.json
	@command -v npm >/dev/null || { echo "npm is missing: the tests of playlists in a browser need it"; exit 0; }; \
	npm ci --prefix tests/player --ignore-scripts --no-audit --no-fund --silent && touch $@

# Whatever the environment says, compiled modules are kept: tests start many processes, and the runner has four.
test test-long gather bench bench-compare: export PYTHONDONTWRITEBYTECODE =
gather: $(STAMP)  ## compile the tests for the runner's processes, which else each do it anew
	@$(BIN)/pytest --collect-only -qq >/dev/null

# A client generator for the tests, in an environment of its own: its pins are not the project's.
$(GENERATOR): requirements/client-generator.lock
	test -x .venv-client/bin/python || $(PYTHON) -m venv .venv-client
	.venv-client/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

# A test of this suite that is still under way after 20 s hangs.
# Its tests wait for far ends more than for the processor, so that five processes nearly fill two cores.
test: gather  ## the fast suite: every promise in some minutes, with Python packages alone; TESTS=path narrows it
	$(BIN)/pytest -n 5 $(RUNNER) --timeout 20 --durations 20 --durations-min 2 -m 'not benchmark and not long' $(TESTS)

# Random exploration is fresh here, and the same in each run of the fast suite.
test-long: gather $(PLAYER) $(GENERATOR) debian  ## the long suite: browsers, brokers, kills and rounds, and fresh random examples; TESTS=path
	$(BIN)/pytest -n 4 $(RUNNER) --hypothesis-profile fresh -m 'not benchmark and (long or hypothesis)' $(TESTS)

test-all: test test-long  ## both suites; TESTS=path narrows them

check: $(STAMP)  ## lint, format, types, import contracts, patterns of linear time
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/linear_patterns.py

wheel:  ## build the wheel twice, equal; install it in a new environment elsewhere, and run it there
	@PYTHON=$(PYTHON) tests/installation/try-wheel

deb:  ## the Debian packages, in build/deb, with checksums: each in a clean root (root, debootstrap); SUITES=bookworm SIGN_KEY=
	@for suite in $(SUITES); do packaging/deb/build $$suite || exit 1; done
	@SIGN_KEY=$(SIGN_KEY) packaging/sums build/deb

sbom: $(RUN_STAMP)  ## the bill of materials, in CycloneDX: build/sbom.cdx.json
	$(BIN)/python scripts/bill_of_materials.py build/sbom.cdx.json

# The auditor, in an environment of its own: its pins are not the project's.
$(AUDITOR): requirements/audit.lock
	test -x .venv-audit/bin/python || $(PYTHON) -m venv .venv-audit
	.venv-audit/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

audit: $(AUDITOR)  ## known faults of the locked libraries, from an advisory service; fails where none is reached; SERVICE=pypi
	.venv-audit/bin/python scripts/audit.py requirements/runtime.lock $(or $(SERVICE),pypi)

coverage: $(STAMP)  ## branch coverage by package, printed; TESTS=tests/gateway/lanes narrows it
	$(BIN)/coverage erase
	-$(BIN)/coverage run -m pytest -q -n 0 -p no:randomly $(TESTS)
	$(BIN)/coverage combine -q
	$(BIN)/python scripts/coverage_by_package.py

install-trial:  ## install, set up, try, upgrade and purge the package in a bare root with systemd; SUITES= PREVIOUS=commit
	@for suite in $(SUITES); do \
	  older=$$(packaging/deb/build $$suite build/deb $(PREVIOUS)) && newer=$$(packaging/deb/build $$suite) && \
	  tests/installation/try-package $$suite "$$older" "$$newer" || exit 1; done

bench: $(STAMP)  ## benchmarks beside their peers, and one table of the figures; all of them also write docs/performance.md
	@mkdir -p build && rm -f build/figures.jsonl
	@BENCH_FIGURES=$(CURDIR)/build/figures.jsonl $(BIN)/pytest $(or $(TESTS),tests/benchmarks) -p no:randomly -s -m benchmark; \
	code=$$?; $(BIN)/python scripts/bench_table.py build/figures.jsonl $(if $(TESTS),,--write docs/performance.md --plot docs/growth.svg); \
	exit $$code

bench-compare: $(STAMP)  ## the figures of this tree beside those of another commit, interleaved; BASE=commit TESTS= ROUNDS=3
	@$(BIN)/python scripts/bench_compare.py $(or $(BASE),HEAD~1) $(TESTS) --rounds $(or $(ROUNDS),3)

cuts: $(STAMP)  ## lines cut while a gate is to be closed: nothing of a command may arrive late (root); CUTS=50 SEED=
	$(BIN)/python tests/simulators/cut_rounds.py --cuts $(or $(CUTS),50) $(if $(SEED),--seed $(SEED))

power-cuts: $(STAMP)  ## the power fails at any moment of real traffic, on a disk that tears and reorders; CUTS=10000 SEED=
	$(BIN)/python tests/simulators/power_cuts.py --cuts $(or $(CUTS),10000) $(if $(SEED),--seed $(SEED))

soak: $(STAMP)  ## dense traffic at a real gateway; what it takes must not grow, and build/soak.svg draws it; MINUTES=20
	$(BIN)/python tests/simulators/soak.py --minutes $(or $(MINUTES),20)

outage: $(STAMP)  ## a bad line to central and kill -9, over real sockets and processes; SECONDS_OF_IT=240 SEED=
	$(BIN)/python tests/simulators/outage_rounds.py --seconds $(or $(SECONDS_OF_IT),240) $(if $(SEED),--seed $(SEED))

shared-areas: $(STAMP)  ## four gateways share areas while networks, servers and gateways fail; SECONDS=600 SEED= PLANT=
	$(BIN)/python tests/simulators/shared_area_rounds.py --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED)) $(if $(PLANT),--plant $(PLANT))

many-sites: $(STAMP)  ## a thousand gateways at one NATS server: events, commands, its return; SITES=1000 SECONDS=60 SEED=
	$(BIN)/python tests/simulators/many_sites.py --sites $(or $(SITES),1000) --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

idle-traffic: $(STAMP)  ## what an idle site of 5,000 cards sends and gets in a day, with a fleet and without; SECONDS=180
	$(BIN)/python tests/simulators/idle_traffic.py --seconds $(or $(SECONDS),180)

outage-month: $(STAMP)  ## thirty days without central on virtual time, then back in step; SEED=1
	$(BIN)/edge-gateway simulate --outage --days 30 --lanes 2 --seed $(or $(SEED),1)

seeds: $(STAMP)  ## simulations on fresh seeds, two side by side; DAYS=5 LANES=4 SEEDS=200 OUTAGE=1
	$(BIN)/python tests/simulators/seed_runs.py --days $(or $(DAYS),5) --lanes $(or $(LANES),4) --seeds $(or $(SEEDS),20) $(if $(OUTAGE),--outage)

mutations: $(STAMP)  ## break each guard once and see that it is found; ONLY="fire input"
	$(BIN)/python tests/simulators/mutations.py $(if $(ONLY),--only "$(ONLY)") $(if $(PROCESSES),--processes $(PROCESSES))

fuzz: $(STAMP)  ## requests of every kind, right and wrong, against a running demo by its own description
	FUZZ_TIMES=$(or $(FUZZ_TIMES),4) $(BIN)/pytest tests/system/test_fuzz.py

# A coverage-guided fuzzer, for this target alone: it has no package for every Python and machine that tests run on.
build/atheris: requirements/fuzzer.lock $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: --upgrade --target $@ -r $<
	touch $@

fuzz-parsers: build/atheris  ## a million inputs for each parser, guided by coverage; INPUTS=1000000 SECONDS_EACH=3600 ONLY="sdp rtp" UNGUIDED=1
	PYTHONPATH=build/atheris $(BIN)/python tests/simulators/fuzz_parsers.py --inputs $(or $(INPUTS),1000000) --seconds $(or $(SECONDS_EACH),3600) $(if $(UNGUIDED),--unguided) $(if $(ONLY),--only $(ONLY))

# Python itself keeps memory until its end, so that leaks are looked for by a test in place of the sanitizer.
fuzz-compiled: $(STAMP)  ## the compiled functions beside those in Python, watched by address and undefined-behaviour sanitizers; SECONDS=60 SEED=
	mkdir -p build/sanitized
	cc -shared -fPIC -O1 -g -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer \
	  -DPy_LIMITED_API=0x030B0000 -I$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_paths()["include"])') \
	  drivers/rtsp/_fast.c -o build/sanitized/_fast.abi3.so
	LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
	  PYTHONPATH=. $(BIN)/python tests/simulators/packet_cases.py build/sanitized/_fast.abi3.so --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

# What builds the documents' site, in an environment of its own, and the scripts that the site brings along.
$(SITE): requirements/docs.lock
	test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	.venv-docs/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

$(SITE_SCRIPTS): requirements/site/package-lock.json
	npm ci --prefix requirements/site --ignore-scripts --no-audit --no-fund --silent && touch $@

docs: $(STAMP) $(SITE) $(SITE_SCRIPTS)  ## the pages that are made from the program, then the site in build/site (npm)
	$(BIN)/python scripts/interface_coverage.py
	$(BIN)/python scripts/interface_for_programs.py
	$(BIN)/python scripts/event_numbers.py
	$(BIN)/python scripts/troubleshooting.py
	$(BIN)/python scripts/log_codes.py
	$(BIN)/python scripts/site_file_reference.py
	$(BIN)/python scripts/authorisation.py
	$(BIN)/python scripts/bill_of_materials.py
	$(BIN)/python scripts/drivers_and_profiles.py
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet --strict

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

pictures: $(STAMP)  ## the documents' pictures of the status page, from the demo site
	$(BIN)/python scripts/pictures.py

lock:  ## make the locks anew from pyproject.toml (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements/runtime.lock pyproject.toml
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra dev --extra collector -c requirements/runtime.lock -o requirements/dev.lock pyproject.toml
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra collector -c requirements/runtime.lock -o requirements/collector.lock pyproject.toml
	echo 'openapi-python-client' | uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements/client-generator.lock -
	echo 'pip-audit' | uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements/audit.lock -
	echo 'mkdocs-material' | uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements/docs.lock -
	echo 'setuptools' | uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -c requirements/dev.lock -o requirements/build.lock -

clean:
	rm -rf $(VENV) .venv-client .venv-docs .venv-audit .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build *.egg-info
