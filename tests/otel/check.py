"""Decodes the spans of an agent's work with the packages of OpenTelemetry, and looks each of their
names up. `python3 tests/otel/check.py PUMPHOUSE`, with the packages of tests/otel/requirements.txt.

A name is right where opentelemetry-semantic-conventions has it, or where the table of `pumphouse
otel names` has it with the page of the convention that defines it."""

import importlib
import json
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from opentelemetry import semconv
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

PROGRAM = str(Path(sys.argv[1]).resolve())
PAGES = ("https://github.com/open-telemetry/", "https://opentelemetry.io/docs/")

MANIFEST = """\
name: checked
models:
  lead: {use: scripted, file: lead.txt}
listeners:
  - {use: calculate}
  - {use: agent, name: lead, model: lead, peers: [calculate]}
"""
# One action that succeeds, one that fails, and a turn whose model has nothing left to say.
LEAD = """\
%% reply usage=800/40/300
<action id="sum">{"name": "calculate", "parameters": {"expression": "6*7"}}</action>
<action id="wrong">{"name": "calculate", "parameters": {"expression": "6*"}}</action>
%% reply usage=900/10
<response>Done: $sum</response>
"""
ASK = '<lead xmlns="https://xml-pipeline.org/ns/lead/v1">secret4711</lead>'
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ENVELOPE = (
    '<message xmlns="https://xml-pipeline.org/ns/envelope/v1">'
    f'<meta><traceparent xmlns="https://www.w3.org/TR/trace-context">00-{TRACE}-{PARENT}-01'
    f"</traceparent></meta>{ASK}</message>"
)

taken = []


class Collector(BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        taken.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()


def run(folder, *arguments, stdin=None):
    ran = subprocess.run([PROGRAM, *arguments], cwd=folder, input=stdin, capture_output=True)
    assert ran.returncode == 0, (arguments, ran)
    return ran.stdout


def work(folder):
    """Has the agent work, and stops the pump."""
    command = [PROGRAM, "run", "--json", "--listen", "127.0.0.1:0"]
    pump = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE)
    address = json.loads(pump.stdout.readline())["listen"][0]
    run(folder, "send", "--connect", address, stdin=ENVELOPE.encode())
    pump.terminate()
    assert pump.wait() == 0


def convention():
    """Every attribute and every metric that the package names."""
    names = set()
    folder = Path(semconv.__path__[0])
    files = [*folder.rglob("*_attributes.py"), *folder.rglob("*_metrics.py")]
    for file in files:
        module = ".".join(["opentelemetry", "semconv", *file.relative_to(folder).parts])
        values = vars(importlib.import_module(module.removesuffix(".py"))).values()
        names.update(it for it in values if isinstance(it, str) and "." in it)
    return names


def spans_of(batches):
    request = ExportTraceServiceRequest.FromString(b"".join(batches))
    for of_resource in request.resource_spans:
        yield from ((of_resource, of_scope, it) for of_scope in of_resource.scope_spans
                    for it in of_scope.spans)


def names_of(of_resource, of_scope, span):
    yield from (it.key for it in of_resource.resource.attributes)
    yield from (it.key for it in of_scope.scope.attributes)
    yield from (it.key for it in span.attributes)
    yield from (it.key for event in span.events for it in event.attributes)


def main():
    known = convention()
    assert "gen_ai.operation.name" in known and "error.type" in known, len(known)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "organism.yaml").write_text(MANIFEST)
        Path(folder, "lead.txt").write_text(LEAD)
        work(folder)
        server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        run(folder, "otel", "export", "--to", url)
        bare, taken[:] = list(taken), []
        run(folder, "otel", "export", "--to", url)
        again, taken[:] = list(taken), []
        run(folder, "otel", "export", "--to", "content.pb", "--content")
        content = Path(folder, "content.pb").read_bytes()
        table = [json.loads(it) for it in run(folder, "otel", "names", "--json").splitlines()]
    table = {it["name"]: it for it in table}

    assert bare == again, "a second export differs from the first"
    assert b"secret4711" not in b"".join(bare) and b"secret4711" in content
    spans = list(spans_of(bare))
    shape = sorted((it.name, Span.SpanKind.Name(it.kind)) for _, _, it in spans)
    assert shape == [
        ("chat scripted by lead.txt", "SPAN_KIND_CLIENT"),
        ("chat scripted by lead.txt", "SPAN_KIND_CLIENT"),
        ("execute_tool calculate", "SPAN_KIND_INTERNAL"),
        ("execute_tool calculate", "SPAN_KIND_INTERNAL"),
        ("invoke_agent lead", "SPAN_KIND_INTERNAL"),
    ], shape
    ids = {it.span_id for _, _, it in spans}
    assert len(ids) == len(spans) and all(len(it) == 8 for it in ids)
    [root] = [it for _, _, it in spans if not it.parent_span_id]
    assert all(it.parent_span_id in ids for _, _, it in spans if it is not root)
    assert {it.trace_id for _, _, it in spans} == {root.trace_id} and len(root.trace_id) == 16
    [link] = root.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (TRACE, PARENT)
    failed = [it for _, _, it in spans if it.status.code == Status.STATUS_CODE_ERROR]
    assert [it.name for it in failed] == ["execute_tool calculate"], failed
    assert [event.name for event in failed[0].events] == ["exception"]

    used = sorted({name for it in spans + list(spans_of([content])) for name in names_of(*it)})
    unknown = [name for name in used if name not in table]
    assert not unknown, f"names that aren't in the table: {unknown}"
    for name in sorted(table):
        if name in known:
            print(f"{name}: in opentelemetry-semantic-conventions")
        else:
            page = table[name]["page"]
            own = name.startswith("pumphouse.")
            assert own or page.startswith(PAGES), f"{name} has no page of the convention"
            print(f"{name}: {'our own' if own else page}")
    print(f"{len(spans)} spans decoded; {len(used)} names sent, {len(table)} in the table")


main()
