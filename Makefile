# The two commands of this project, and a few more. Everything else is cargo's.

CARGO ?= cargo

.PHONY: run test fmt lint unit bench install

# Builds, compares the default algorithms on the built-in link and in a simulated LTE cell, prints both tables, and names
# the reports it wrote.
run:
	$(CARGO) build --release --locked --package ranpace
	@echo "Over the built-in link:"
	@$(CARGO) run --quiet --release --locked --package ranpace -- compare
	@echo "In the LTE cell:"
	@$(CARGO) run --quiet --release --locked --package ranpace -- compare --cell lte

# Everything that CI checks: format, warnings, every test.
test: fmt lint unit

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets --locked -- --deny warnings
	@# The fuzz targets are a workspace of their own; is their lock file of these manifests?
	$(CARGO) metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null

unit:
	$(CARGO) test --workspace --locked

bench:
	$(CARGO) bench --package ranpace-benches

install:
	$(CARGO) install --locked --path front/cli
