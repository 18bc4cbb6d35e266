# What a change goes through. `just` lists it all; `.ci/run` does it all.

_default:
    @just --list

# What the README says: unit tests, scenes, tidy, doc tests.
test *args:
    cargo test {{ args }}

# Formatting, lints, tests, dependencies, the demo: as in .ci/run, with nothing installed.
all: fmt-check lint test deny demo

fmt:
    cargo fmt --all

fmt-check:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets -- -D warnings

# The fastest look at whether it compiles.
check:
    cargo check --workspace --all-targets

# The house rules that the compiler doesn't know.
tidy:
    cargo test --test it tidy::

# Licences, sources and banned crates; `cargo install cargo-deny --locked` brings the tool.
deny:
    cargo deny check bans licenses sources

# The whole trip over a real socket, on a folder of its own.
demo:
    cargo run --release -- demo

# The speed table.
bench *args:
    cargo run --release -- bench {{ args }}

# Rewrites the golden files from what the tests see; read the diff before you commit it.
bless:
    BLESS=1 TRYBUILD=overwrite cargo test

doc:
    cargo doc --workspace --no-deps --open

# Instructions for parse, check, encode, append and hop, counted under valgrind.
counts *args:
    command -v gungraun-runner >/dev/null || cargo install --locked gungraun-runner
    cargo bench --bench counts {{ args }}

# Kills a loaded pump so many times, and looks for what it acknowledged.
crash rounds="20":
    PUMPHOUSE_CRASHES={{ rounds }} cargo test --test it crash::what_was -- --nocapture
