# The two commands of this project, and a few more. Everything else is cargo's.

CARGO ?= cargo

.PHONY: run test test-fast fmt lint doc unit bench install minimum-rust deny advisories

# Builds, compares the default algorithms on the built-in link and in a simulated LTE cell, prints both tables, and names
# the reports it wrote.
run:
	$(CARGO) build --release --locked --package ranpace
	@echo "Over the built-in link:"
	@$(CARGO) run --quiet --release --locked --package ranpace -- compare
	@echo "In the LTE cell:"
	@$(CARGO) run --quiet --release --locked --package ranpace -- compare --cell lte

# Everything that CI checks: format, warnings, documentation, every test.
test: fmt lint doc unit

# What needs neither root nor the real clock, in less than four minutes once it is built: libraries, the simulator, the pages.
test-fast: fmt
	$(CARGO) test --workspace --locked --lib --exclude ranpace-emulator --exclude ranpace-saturator
	$(CARGO) test --locked --package ranpace-sim --test golden --test conservation --test physics --test recovery --test quic
	$(CARGO) test --locked --package ranpace-scenario --tests
	$(CARGO) test --locked --package ranpace-lab --test architecture --test docs_links --test docs_results --test recorded_verdicts

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets --locked -- --deny warnings
	@# The fuzz targets are a workspace of their own; is their lock file of these manifests?
	$(CARGO) metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null

# A link in a comment that leads nowhere is an error. With private items: heads of files link to their constants.
doc:
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --workspace --no-deps --document-private-items --locked

unit:
	$(CARGO) test --workspace --locked

bench:
	$(CARGO) bench --package ranpace-benches

install:
	$(CARGO) install --locked --path front/cli

# The oldest compiler that Cargo.toml claims (rust-version) builds everything. Needs rustup and the network.
MINIMUM_RUST = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
minimum-rust:
	rustup toolchain install $(MINIMUM_RUST) --profile minimal --no-self-update
	CARGO_TARGET_DIR=target/minimum-rust rustup run $(MINIMUM_RUST) cargo check --workspace --all-targets --locked

# Licences, sources and twofold versions of the packages that it is built with, and their known faults: deny.toml. Needs `cargo install cargo-deny`.
deny:
	$(CARGO) deny --locked check licenses bans sources

advisories:
	$(CARGO) deny --locked check advisories
