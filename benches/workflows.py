"""What triggers and workflows cost, over a real socket: `just workflows`.

    workflows.py PUMPHOUSE rules             what 1,000 triggers add to a turn that sets three fields
    workflows.py PUMPHOUSE langgraph [N...]  runs of workflows beside LangGraph's: `joke`, or N steps

All rows alternate within a round, and the median of the rounds counts. `langgraph` needs a Python
with the packages of `peers/langgraph.txt`, and this one runs with it.
"""

import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
ENVELOPE = "https://xml-pipeline.org/ns/envelope/v1"
LANGGRAPH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers", "langgraph_runs.py")


class Pump:
    """A served pump in a folder of its own, and one connection to it."""

    def __init__(self, program, files):
        self.folder = tempfile.TemporaryDirectory()
        for name, text in files.items():
            with open(os.path.join(self.folder.name, name), "w") as file:
                file.write(text)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = free.getsockname()
        listen = ["--listen", f"127.0.0.1:{self.address[1]}"]
        self.process = subprocess.Popen(
            [program, "run", "organism.yaml", *listen], cwd=self.folder.name,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        self.socket = self.connect()

    def connect(self):
        while self.process.poll() is None:
            try:
                return socket.create_connection(self.address)
            except OSError:
                time.sleep(0.05)
        raise SystemExit("the pump ended; run `pumphouse check` on its manifest")

    def ask(self, to, payload, answer, thread=None):
        """Pushes a payload, waits for an answer, and returns its thread."""
        thread = f"<thread>{thread}</thread>" if thread else ""
        meta = f"<meta>{thread}<to>{to}</to></meta>"
        message = f'<message xmlns="{ENVELOPE}">{meta}{payload}</message>\n'
        self.socket.sendall(message.encode())
        said = b""
        while f"</{answer}>".encode() not in said:
            piece = self.socket.recv(65536)
            said += piece
            if not piece or b"-failed " in said or b"agent-stopped" in said or b"<huh" in said:
                self.process.kill()
                raise SystemExit(said.decode())
        return said.split(b"<thread>")[1].split(b"</thread>")[0].decode()

    def processor_us(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """Stops the pump, and returns how many bytes its log has."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        found = os.walk(self.folder.name)
        paths = [os.path.join(at, name) for at, _, names in found for name in names]
        size = sum(os.path.getsize(it) for it in paths if "pumphouse.db" in it)
        self.folder.cleanup()
        return size


def row(what, values, unit):
    values = sorted(values)
    print(f"{what}: {statistics.median(values):,.0f} {unit} ({values[0]:,.0f}–{values[-1]:,.0f})",
          flush=True)


def watched(conditions):
    """An agent that sets three fields in each turn, and a thousand workflows, which it has."""
    step = "steps: [{name: note, target: echo, parameters: {text: noted}}]\n"
    files = {}
    for number in range(1_000):
        trigger = f"trigger: {{conditions: {conditions(number)}}}\n" if conditions else ""
        files[f"w{number}.yml"] = f"kind: Workflow\nname: w{number}\n{trigger}{step}"
    names = ", ".join(f"w{number}" for number in range(1_000))
    fields = "status: {type: string}, count: {type: number}, context: {type: object}"
    files["organism.yaml"] = (
        "durability: memory\nmodels: {m: {use: scripted, file: replies.txt}}\n"
        "include: [w*.yml]\nlisteners:\n  - {use: echo}\n"
        f"  - {{use: agent, name: coder, model: m, workflows: [{names}],\n"
        f"     metadata: {{fields: {{{fields}, other: {{type: string}}}}}}}}\n"
    )
    replies = []
    for turn in range(30):
        fields = f'{{"status": "S{turn % 7}", "count": {turn}, "context": {{"at": {turn}}}}}'
        replies.append(f"%% reply\n<metadata>{fields}</metadata>\n<response>.</response>\n")
    files["replies.txt"] = "".join(replies)
    return files


def rules(program):
    kinds = {
        "no trigger": None,
        "1,000 on the fields, none fires": lambda it: f"{{status: NEVER, count: {it}}}",
        "1,000 on the fields, one fires": lambda it: f"{{count: {it}}}",
        "1,000 on another field": lambda it: f'{{other: "{it}"}}',
    }
    question = '<coder xmlns="https://xml-pipeline.org/ns/coder/v1">Go.</coder>'
    pumps = {kind: Pump(program, watched(conditions)) for kind, conditions in kinds.items()}
    took, processor = {kind: [] for kind in kinds}, {kind: [] for kind in kinds}
    for number in range(3 * ROUNDS + 1):
        for kind, pump in pumps.items():
            before, began = pump.processor_us(), time.perf_counter()
            for _ in range(5):
                thread = pump.ask("coder", question, "response")
                for _ in range(29):
                    pump.ask("coder", question, "response", thread)
            passed = time.perf_counter() - began
            # What goes on behind the last answer counts as the processor's time.
            time.sleep(0.05)
            if number > 0:
                took[kind].append(passed * 1e6 / 150)
                processor[kind].append((pump.processor_us() - before) / 150)
    for kind, pump in pumps.items():
        pump.stop()
        row(f"rules: {kind}, a turn", took[kind], "µs")
        row(f"rules: {kind}, the processor's time of a turn", processor[kind], "µs")


JOKE = """kind: Workflow
name: run
steps:
  - {name: generate_joke, type: llm, target: llm,
     parameters: {prompt: "Write a short joke about ${trigger.topic}"}}
  - {name: check_punchline, target: echo, parameters: {text: "${steps.generate_joke}"}}
  - name: is_weak
    type: decision
    condition: steps.check_punchline != "?"
    then:
      - {name: improve_joke, type: llm, target: llm,
         parameters: {prompt: "Make this joke funnier: ${steps.generate_joke}"}}
      - {name: polish_joke, type: llm, target: llm,
         parameters: {prompt: "Add a surprising twist: ${steps.improve_joke}"}}
outputs: {last: "${steps.polish_joke}"}
"""


def chain(count):
    text = "kind: Workflow\nname: run\nsteps:\n"
    for number in range(count):
        before = f"${{steps.s{number - 1}}}" if number else "${trigger.topic}"
        prompt = f'parameters: {{prompt: "{number} {before}"}}'
        text += f"  - {{name: s{number}, type: llm, target: llm, {prompt}}}\n"
    return text + f'outputs: {{last: "${{steps.s{count - 1}}}"}}\n'


def in_pump(program, what, runs, durability):
    """Steps a second, and bytes of the log per run. The model answers at once."""
    answer = "Answer to: Write a short joke about cats, as long as the others' answers are."
    pump = Pump(program, {
        "run.yml": JOKE if what == "joke" else chain(int(what)),
        "replies.txt": f"%% script repeat=last\n%% reply\n{answer}\n",
        "organism.yaml": (
            # A model that always says the same isn't caught in a loop here.
            f"durability: {durability}\ninclude: [run.yml]\nlimits: {{repeats_max: 1000}}\n"
            "models: {m: {use: scripted, file: replies.txt}}\n"
            "listeners: [{use: llm, settings: {model: m}}, {use: echo}]\n"
        ),
    })
    payload = '<run xmlns="https://xml-pipeline.org/ns/workflow/run/v1">{"topic": "cats"}</run>'
    for _ in range(20):
        pump.ask("run", payload, "workflow-result")
    began = time.perf_counter()
    for _ in range(runs):
        pump.ask("run", payload, "workflow-result")
    took = time.perf_counter() - began
    steps = 4 if what == "joke" else int(what)
    return steps * runs / took, pump.stop() / (runs + 20)


def in_langgraph(what, runs, durability):
    command = [sys.executable, LANGGRAPH, what, str(runs), durability]
    said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode:
        raise SystemExit(said.stderr)
    rate, size = said.stdout.split()
    return float(rate), float(size)


def langgraph(program, wanted):
    for what in wanted or ["joke", "50"]:
        runs = 200 if what == "joke" else 10
        found = {}
        for _ in range(ROUNDS):
            for durability in ("memory", "async", "sync"):
                measured = in_langgraph(what, runs, durability)
                found.setdefault(f"LangGraph, {durability}", []).append(measured)
            for durability in ("memory", "normal", "full"):
                measured = in_pump(program, what, runs, durability)
                found.setdefault(f"ours, {durability}", []).append(measured)
        for name, measured in found.items():
            row(f"{what}: {name}", [rate for rate, _ in measured], "steps/s")
            row(f"{what}: {name}", [size for _, size in measured], "bytes a run")


def main():
    program, what, *more = sys.argv[1:]
    program = os.path.abspath(program)
    rules(program) if what == "rules" else langgraph(program, more)


main()
