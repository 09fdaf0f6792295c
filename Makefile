# The two commands of this project, and a few more. Everything else is cargo's.

CARGO ?= cargo

.PHONY: run test test-fast fmt lint doc unit python page page-test wheel bench soak instructions instructions-record install guide minimum-rust deny advisories

# `ranpace kernel` is built where clang and the headers of libelf and zlib are; everything else needs none of them.
HAS_BPF := $(shell [ "$$(uname -s)" = Linux ] && command -v $${CLANG:-clang} >/dev/null && \
	printf '\043include <gelf.h>\n\043include <zlib.h>\n' | $${CC:-cc} -E -x c - >/dev/null 2>&1 && echo yes)
FEATURES := $(if $(HAS_BPF),--features ranpace/kernel)
# The Python package is checked where Python 3.10 or later is, with what makes environments.
PYTHON ?= python3
HAS_PYTHON := $(shell $(PYTHON) -c 'import sys, venv, ensurepip; print("yes" * (sys.version_info >= (3, 10)))' 2>/dev/null)
# It is loaded by Python, and does not link to it.
export PYO3_BUILD_EXTENSION_MODULE = 1
# The page of `ranpace lab` is built where Node 20.19 or later is: vite's least version.
HAS_NODE := $(shell command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' 2>/dev/null && echo yes)
# What is checked has all features; what is installed leaves out brokers.
CHECKED := --features ranpace/amqp $(FEATURES) $(if $(HAS_PYTHON),--features ranpace-python/bindings)

# Builds, compares the default algorithms on the built-in link and in a simulated LTE cell, prints both tables and the names of the
# reports, and says what to try next. The profile `first` builds sooner than `release`, and is a few per cent slower: Cargo.toml.
# It leaves out `ranpace rnis`, `proxy`, `serve`, `fetch`, `lab`, `kernel` and `pep`, whose packages no comparison needs.
RANPACE = $${CARGO_TARGET_DIR:-target}/first/ranpace
FIRST = --profile first --locked --package ranpace --no-default-features
run:
	@test -x $(RANPACE) || echo "Building ranpace and the packages it uses: about two minutes on two cores, once."
	$(CARGO) build $(FIRST)
	@echo
	@echo "A minute of each algorithm over a trace, whose capacity changes every millisecond, and a buffer of 150 KB:"
	@echo
	@$(CARGO) run --quiet $(FIRST) -- compare
	@echo
	@echo "The same in a simulated LTE cell, with a second user who loads web pages:"
	@echo
	@$(CARGO) run --quiet $(FIRST) -- compare --cell lte
	@echo
	@echo "The reports named above are web pages, with plots of each run over time. Try next:"
	@echo
	@echo "  $(RANPACE) run examples/cell.toml                               a scenario to change: who downloads, where, with what"
	@echo "  $(RANPACE) compare --cell nr --cc cubic,bbr1,cdbev2 --seeds 5   other algorithms, in 5G, with confidence intervals"
	@echo "  $(RANPACE) reproduce --list                                     published experiments, each repeated by one command"
	@echo
	@echo "make install puts ranpace on your path, with all optimisations and with the commands that this build leaves out:"
	@echo "\`ranpace rnis\`, \`proxy\`, \`serve\`, \`fetch\`, \`lab\`, \`kernel\` and \`pep\`. README.md says what you can do with it."

# Everything that CI checks: format, warnings, documentation, every test.
test: fmt lint doc unit python page-test

# What needs neither root nor the real clock, in less than four minutes once it is built: libraries, the simulator, scenarios, the pages.
# One command with the features of `unit`: cargo then builds nothing for it that `make test` does not need, too.
FAST = golden conservation physics recovery quic any_text cells key_tables page refused \
	architecture import_cycles docs_figures docs_links docs_results recorded_verdicts
test-fast: fmt
	$(CARGO) test --workspace --locked $(CHECKED) --exclude ranpace-emulator --exclude ranpace-saturator --lib $(FAST:%=--test %)

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets --locked $(CHECKED) -- --deny warnings
	@# What `make run` builds, and a build without what needs clang.
	$(CARGO) clippy --package ranpace --locked --no-default-features -- --deny warnings
	$(CARGO) clippy --package ranpace --locked -- --deny warnings
	@# The fuzz targets are a workspace of their own; is their lock file of these manifests?
	$(CARGO) metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null

# A link in a comment that leads nowhere is an error. With private items: heads of files link to their constants.
doc:
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --workspace --no-deps --document-private-items --locked $(CHECKED)

unit:
	$(CARGO) test --workspace --locked --no-fail-fast $(CHECKED)

# The tests of the Python package, its pages and its notebooks, with the library that the workspace's build makes anyway.
PACKAGE = $${CARGO_TARGET_DIR:-target}/python-package
VENV = $${CARGO_TARGET_DIR:-target}/python
python:
ifeq ($(HAS_PYTHON),)
	@test -z "$$RANPACE_NO_SKIP" || { echo "make python needs Python 3.10 or later with venv: apt install python3-venv" >&2; exit 1; }
	@echo "skipped: the Python package needs Python 3.10 or later with venv"
else
	@# With --tests packages have the features that tests give them, so that nothing is compiled again after `make unit`.
	$(CARGO) build --workspace --lib --bins --tests --locked $(CHECKED)
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --requirement front/python/test-requirements.txt
	rm -rf $(PACKAGE)
	mkdir -p $(PACKAGE)
	cp -r front/python/python/ranpace $(PACKAGE)/
	cp $${CARGO_TARGET_DIR:-target}/debug/lib_ranpace.so $(PACKAGE)/ranpace/_ranpace.abi3.so
	$(VENV)/bin/mypy --strict --config-file pyproject.toml front/python/python/ranpace
	PYTHONPATH=$$(realpath $(PACKAGE)) RANPACE=$$(realpath $${CARGO_TARGET_DIR:-target}/debug/ranpace) \
		$(VENV)/bin/python -m pytest --quiet --config-file pyproject.toml --doctest-modules $(PACKAGE) front/python/tests
endif

# The page of `ranpace lab`. The built files are committed, so that cargo needs no Node.
PAGE = front/web/page
BUILT_PAGE = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/page
page:
	cd $(PAGE) && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build

# Are the committed files those of the sources? Then each feature is clicked through in Chromium, with the real server.
page-test:
ifeq ($(HAS_NODE),)
	@test -z "$$RANPACE_NO_SKIP" || { echo "make page-test needs Node 20.19 or later with npm: see tools/node-requirements.txt" >&2; exit 1; }
	@echo "skipped: the page of \`ranpace lab\` needs Node 20.19 or later with npm"
else
	@# Beside the committed files: the server would be built again if they were written.
	cd $(PAGE) && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build -- --outDir $(BUILT_PAGE) --emptyOutDir
	diff --recursive --brief $(PAGE)/dist $(BUILT_PAGE) || { echo "the built files are not those of the sources: commit what \`make page\` makes" >&2; exit 1; }
	cd $(PAGE) && node --test tests/units.mjs
	@# As for the Python package: what `make unit` has built.
	$(CARGO) build --workspace --lib --bins --tests --locked $(CHECKED)
	cd $(PAGE) && node tests/lab.mjs $$(realpath $${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/ranpace)
endif

# A wheel of the Python package for CPython 3.10 and later, in target/wheels.
wheel:
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check 'maturin>=1.16,<2'
	$(VENV)/bin/maturin build --release --locked --out $${CARGO_TARGET_DIR:-target}/wheels

bench:
	$(CARGO) bench --package ranpace-benches

# All faults of the proxy together, for 20 minutes; as root.
soak:
	RANPACE_NO_SKIP=1 RANPACE_SOAK_SECONDS=1200 $(CARGO) test --package ranpace-proxy --test soak -- --nocapture

# Instructions of short simulations, under valgrind, against benches/instructions.txt: more than 5 % more fails.
instructions:
	$(CARGO) run --quiet --locked --release --package ranpace-sim --example instructions

instructions-record:
	$(CARGO) run --quiet --locked --release --package ranpace-sim --example instructions -- --record

install:
	@test -n "$(HAS_BPF)" || echo "Without \`ranpace kernel\` and \`ranpace pep\`: they need clang and the headers of libelf and zlib (apt install clang libelf-dev zlib1g-dev)."
	$(CARGO) install --locked --path front/cli $(FEATURES)

# The guide as a site, target/guide/site/index.html. Pages link to each other across folders, so they are laid out as they lie here;
# the list of chapters, docs/SUMMARY.md, is moved to the top for mdBook.
GUIDE = target/guide/src
guide:
	@command -v mdbook >/dev/null || { echo "make guide needs mdBook: cargo install --locked mdbook" >&2; exit 1; }
	rm -rf target/guide
	mkdir -p $(GUIDE)
	tar --create README.md CHANGELOG.md CONTRIBUTING.md RELEASING.md SECURITY.md docs examples reproductions | tar --extract --directory $(GUIDE)
	sed -e 's|](\([^.]\)|](docs/\1|' -e 's|](\.\./|](|' docs/SUMMARY.md > $(GUIDE)/SUMMARY.md
	rm $(GUIDE)/docs/SUMMARY.md
	@# Code is not part of the site: links to it lead to the repository.
	sed -i -E 's#\]\(\.\./((logic|carriers|front)/)#](https://github.com/ranpace/ranpace/tree/main/\1#g' $(GUIDE)/docs/*.md
	mdbook build
	python3 tools/site_links.py target/guide/site
	@echo "The guide: target/guide/site/index.html"

# The oldest compiler that Cargo.toml claims (rust-version) builds everything. Needs rustup and the network.
MINIMUM_RUST = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
minimum-rust:
	rustup toolchain install $(MINIMUM_RUST) --profile minimal --no-self-update
	CARGO_TARGET_DIR=target/minimum-rust rustup run $(MINIMUM_RUST) cargo check --workspace --all-targets --locked $(CHECKED)

# Licences, sources and duplicate versions of the packages that it is built with: deny.toml. Needs `cargo install --locked cargo-deny`, and no network.
deny:
	$(CARGO) deny --locked check licenses bans sources

# Known vulnerabilities of these packages. Fetches RustSec's database from github.com, and fails where it cannot.
advisories:
	$(CARGO) deny --locked check advisories
