# What a change goes through. `just` lists it all; `.ci/run` does it all.

_default:
    @just --list

# What the README says: unit tests, scenes, tidy, doc tests.
test *args:
    cargo test {{ args }}

# The long forms of tests that `cargo test` plays shortly; it takes hours. `just powercut` is for root.
thorough: _killed _drawn

# Long forms in which a process is killed, cut off, or sick.
_killed: crash crash-demo crash-works crash-workflow storm router syncs sick damage kills cuts

# Long forms that draw their cases, or come in crowds.
_drawn: rude sim-all reply-code agent-seeds disconnects idle folds

# Formatting, lints, tests, dependencies, the demo: as in .ci/run, with nothing installed.
all: fmt-check lint test deny demo

fmt:
    cargo fmt --all

fmt-check:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets --features otel,pumphouse-bench/counts -- -D warnings

# The fastest look at whether it compiles.
check:
    cargo check --workspace --all-targets

# Whether the library and the program compile with each feature alone.
features:
    for feature in "" sqlite json-schema models tokenizers tools pdf server otel; do \
        cargo check --quiet -p pumphouse --no-default-features --features "$feature" || exit 1; done

# The house rules that the compiler doesn't know.
tidy:
    cargo test --test it tidy::

# Every seeded mistake of a manifest, and what is said of it, as a table.
mistakes:
    cargo test --test it manifest::mistakes -- --nocapture

# Licences, sources and banned crates; `cargo install cargo-deny --locked` brings the tool.
deny:
    cargo deny check bans licenses sources

# The whole trip over a real socket, on a folder of its own.
demo:
    cargo run -- demo

# The speed table, in about a minute.
bench *args: _dist
    cargo run --profile dist -p pumphouse-bench -- {{ args }}

# What the benchmarks measure.
_dist:
    cargo build --profile dist

# Rewrites the golden files from what the tests see; read the diff before you commit it.
bless:
    BLESS=1 TRYBUILD=overwrite cargo test

doc:
    cargo doc --workspace --no-deps --open

# Instructions for parse, check, encode, append and hop, counted under valgrind.
counts *args:
    command -v gungraun-runner >/dev/null || cargo install --locked gungraun-runner
    cargo bench -p pumphouse-bench --features counts --bench counts {{ args }}

# Kills a loaded pump so many times, and looks for what it acknowledged and did.
crash kills="50":
    PUMPHOUSE_CRASHES={{ kills }} cargo test --test it crash::what_was -- --nocapture

# Installs MCP servers that others wrote, of locked versions, and has agents use them.
mcp-servers:
    tests/mcp/run

# A team at work beside scripted models: a rate limit of a minute, a kill, and a budget that ends it.
team folder="":
    cargo build && tests/team/run target/debug/pumphouse {{ folder }}

# Kills the demo's process at each entry of its threads, as many times as quick as is said.
crash-demo speed="1":
    PUMPHOUSE_CRASH_DEMO={{ speed }} cargo test --test it crash::demo -- --nocapture

# Kills a process at each entry of scenes of held answers and waiting (`an_agent`) and of a workflow
# of fifty steps (`a_workflow`), or of one of the two.
crash-works only="":
    PUMPHOUSE_CRASH_WORKS=1 cargo test --test it crash::works::{{ only }} -- --nocapture

# Crashes the simulated machine at each entry of a workflow of fifty steps, and again and again.
crash-workflow:
    PUMPHOUSE_CRASH_WORKFLOW=1 cargo test --test it workflows::crash -- --nocapture

# A storm of metadata of which each edge fires once, while the pump is killed.
storm updates="10000":
    PUMPHOUSE_STORM={{ updates }} cargo test --test it workflows::storm -- --nocapture

# Asks an agent so many questions over three servers of a router, for each way in which one fails.
router questions="1000":
    PUMPHOUSE_ROUTER_QUESTIONS={{ questions }} cargo test --test it model::router -- --nocapture

# Fills a log with so many GiB, kills the pump, and times its next starts; `--cold` as root.
ready gib="1" *args: _dist
    cargo bench -p pumphouse-bench --bench ready -- --gib {{ gib }} {{ args }}

# Cuts a loaded pump's disk off so many times, for `full` and for `normal`; as root.
powercut cuts="200":
    PUMPHOUSE_CUTS={{ cuts }} cargo test --test it crash::power -- --nocapture --test-threads 1

# Has strace watch so many acknowledgements, and none of them go out before its sync.
syncs acknowledgements="10000":
    PUMPHOUSE_SYNCS={{ acknowledgements }} cargo test --test it crash::order -- --nocapture

# Full disks, failing disks, and a process without descriptors.
sick:
    cargo test --test it crash::sick -- --nocapture

# Damages a log so many times, in every way there is, and looks for what isn't found.
damage times="2000":
    PUMPHOUSE_DAMAGES={{ times }} cargo test -p pumphouse-listeners --test listeners damage:: -- --nocapture

# Listeners that panic, hang, flood up to so many emissions each, and never yield, all at once.
rude emissions="10000":
    PUMPHOUSE_RUDE={{ emissions }} cargo test -p pumphouse-listeners --test listeners engine::rude -- --nocapture

# Tells the story of one seed of the simulation.
sim seed:
    PUMPHOUSE_SEED={{ seed }} cargo test -p pumphouse-listeners --test listeners sim::whatever -- --nocapture

# Plays so many seeds of the simulation.
sim-all seeds="10000":
    PUMPHOUSE_SEEDS={{ seeds }} cargo test -p pumphouse-listeners --test listeners sim::whatever -- --nocapture

# Reads so many random Markdown documents with calls in them, and compares with pulldown-cmark.
reply-code documents="100000":
    PUMPHOUSE_REPLY_CODE={{ documents }} cargo test --test it reply::code::no_call -- --nocapture

# Tells the story of one seed of the agents' properties.
agent-seed seed:
    PUMPHOUSE_AGENT_SEED={{ seed }} cargo test --test it agent::properties::whatever -- --nocapture

# Plays so many seeds of the agents' properties, and counts what came up in them.
agent-seeds seeds="10000":
    PUMPHOUSE_AGENT_SEEDS={{ seeds }} cargo test --test it agent::properties::whatever -- --nocapture

# Cuts a client's connections so many times, and looks for what was lost or doubled.
disconnects times="10000":
    PUMPHOUSE_DISCONNECTS={{ times }} cargo test --test it door::resume -- --nocapture

# Opens so many connections that say nothing, and half as many half-way; times a new client.
idle connections="10000":
    PUMPHOUSE_IDLE={{ connections }} cargo test --test it idle:: -- --nocapture

# Kills the demo's thread at each of its entries, with so many delays behind each.
kills delays="40":
    PUMPHOUSE_KILLS={{ delays }} cargo test --test it agent::demo::killed

# Computes the folds of so many threads with and without caches.
folds threads="1000":
    PUMPHOUSE_FOLDS={{ threads }} cargo test -p pumphouse-listeners --test listeners engine::state::without

# What agents cost: all, or tool, research, crowd, waits, storage.
agents *args:
    cargo bench -p pumphouse-bench --bench agents -- {{ args }}

# What a thousand triggers cost a turn (`rules`), or runs beside LangGraph's (`langgraph`).
workflows what="rules":
    test -d target/langgraph || python3 -m venv target/langgraph
    target/langgraph/bin/pip install -q -r benches/peers/langgraph.txt
    cargo build --profile dist
    target/langgraph/bin/python benches/workflows.py target/dist/pumphouse {{ what }}

# What a call of a tool costs, and the start of a pump with an MCP server; needs Python.
tools-overhead: _dist
    cargo bench -p pumphouse-bench --bench tools

# Ten times what a pump can take, and a neighbour who behaves: who waits, what is refused or lost.
overload *args: _dist
    cargo bench -p pumphouse-bench --bench overload -- {{ args }}

# So many clients that send and never read: the pump's memory, and a neighbour's longest wait.
unread clients="600": _dist
    ulimit -n "$(ulimit -Hn)" && cargo bench -p pumphouse-bench --bench overload -- --unread {{ clients }}

# So many replies of models that never end: the pump's memory, and a neighbour's longest wait.
endless replies="20": _dist
    cargo bench -p pumphouse-bench --bench overload -- --endless {{ replies }}

# So many silent connections from one address: how long newcomers from it wait.
silent connections="16500": _dist
    ulimit -n "$(ulimit -Hn)" && cargo bench -p pumphouse-bench --bench overload -- --silent {{ connections }}

# Ten million messages or half an hour, with strangers' names: what grows, and what stays.
soak *args: _dist
    cargo bench -p pumphouse-bench --bench soak -- {{ args }}

# Draws what the rows of `bench` whose name holds this spend their time on: target/flame/flame.svg.
flame only="push, one" scale="1":
    command -v perf >/dev/null || { echo "perf isn't here: Debian has it in linux-perf, Ubuntu in \
        linux-tools-generic, Fedora in perf" >&2; exit 2; }
    command -v inferno-flamegraph >/dev/null || cargo install --locked inferno
    CFLAGS=-fno-omit-frame-pointer RUSTFLAGS="-C force-frame-pointers=yes" \
        cargo build --release --target-dir target/flame -p pumphouse -p pumphouse-bench
    perf record --freq 997 --call-graph fp --output target/flame/perf.data \
        target/flame/release/pumphouse-bench --only "{{ only }}" --scale {{ scale }}
    perf script --no-inline --input target/flame/perf.data \
        | inferno-collapse-perf | inferno-flamegraph >target/flame/flame.svg
    @echo "target/flame/flame.svg: open it in a browser"

# Our pushes beside NATS, JetStream, Redis and Prosody, as far as they are in PATH.
peers *args:
    cargo bench -p pumphouse-bench --bench peers -- {{ args }}

# What twice the size costs, of every shape that hurts parsers.
shapes:
    cargo bench -p pumphouse-bench --bench shapes

# Talks to a real model, at a server that streams as OpenAI's does.
model url="http://127.0.0.1:8901/v1":
    PUMPHOUSE_MODEL={{ url }} cargo test --test it model::real -- --nocapture

# What threads cost, ten times as many as `bench` has: a million that sleep.
threads scale="10": _dist
    cargo run --profile dist -p pumphouse-bench -- --only "threads: " --scale {{ scale }}

suites := env("PUMPHOUSE_SUITES", justfile_directory() / "../shared/suites")
xml_seeds := suites / "xmlconf/xmlconf" + " " + suites / "xml-attacks/files"
json_seeds := suites / "json/test_parsing" + " " + suites / "blns"

# Compares what a model reads of recorded streams with what their index expects.
llm-sse:
    cargo build && python3 tests/llm/compare.py target/debug/pumphouse {{ suites / "llm-sse" }}

# Compares what a model reads of recorded streams with what the providers' own packages read.
llm-official *wires:
    test -d target/llm || python3 -m venv target/llm
    target/llm/bin/pip install -q -r tests/llm/requirements.txt
    cargo build && target/llm/bin/python tests/llm/official.py target/debug/pumphouse \
        {{ suites / "llm-sse" }} {{ wires }}

# Has the providers' own packages ask the servers of our tests: what they read and send is compared.
llm-clients:
    test -d target/llm || python3 -m venv target/llm
    target/llm/bin/pip install -q -r tests/llm/requirements.txt
    PUMPHOUSE_LLM_PYTHON=target/llm/bin/python cargo test --test it model::clients -- --nocapture

# Measures how fast recorded replies are read, in MB/s per wire, and the pump's memory with a thousand
# replies at once.
wires streams="1000":
    cargo build --release
    python3 tests/llm/speed.py target/release/pumphouse {{ suites / "llm-sse" }}
    ulimit -n "$(ulimit -Hn)" && python3 tests/llm/streams.py target/release/pumphouse {{ streams }}

# Has providers hang up behind each byte of 50 recorded replies, of all wires or of one, and looks for
# what came of it.
cuts wire="all":
    PUMPHOUSE_CUT_RECORDINGS={{ wire }} cargo test --test it model::cuts -- --nocapture

# Makes the table of prices that ships anew, from the package that tests/llm/prices.txt names: the
# prices of a day such as 2026-11-26, or of today.
prices day="":
    test -d target/llm || python3 -m venv target/llm
    target/llm/bin/pip install -q -r tests/llm/prices.txt
    target/llm/bin/python tests/llm/prices.py src/model/prices.yaml {{ day }}
# Decodes the spans of an agent's work with OpenTelemetry's own packages, and looks up their names.
otel:
    test -d target/otel || python3 -m venv target/otel
    target/otel/bin/pip install -q -r tests/otel/requirements.txt
    cargo build --features otel && target/otel/bin/python tests/otel/check.py target/debug/pumphouse

# Fuzzes split, read, envelope, check, canonical_write, json_to_xml, sse or reply (whose words are in
# reply.dict and are best kept to 512 bytes); what it finds new stays in fuzz/work.
fuzz target seconds="60":
    command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
    mkdir -p fuzz/work/{{ target }} fuzz/corpus/{{ target }}
    RUSTC_BOOTSTRAP=1 cargo fuzz run -s none -O {{ target }} fuzz/work/{{ target }} \
        fuzz/corpus/{{ target }} $(ls -d {{ if target == "json_to_xml" { json_seeds } else { xml_seeds } }}) \
        -- -max_total_time={{ seconds }} -max_len=1024 \
        -dict=fuzz/{{ if target == "json_to_xml" { "json" } else { "xml" } }}.dict

# Keeps in fuzz/corpus the fewest inputs that reach what fuzz/work reaches.
fuzz-keep target:
    mkdir -p fuzz/work/kept
    RUSTC_BOOTSTRAP=1 cargo fuzz run -s none -O {{ target }} fuzz/work/kept fuzz/corpus/{{ target }} \
        fuzz/work/{{ target }} -- -set_cover_merge=1 -use_counters=0 -max_len=256
    rm -r fuzz/corpus/{{ target }} && mv fuzz/work/kept fuzz/corpus/{{ target }}
