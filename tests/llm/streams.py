"""Has a pump hear so many replies at once, each of 100 tokens a second, from a provider in a process
of its own: the pump's memory, and how far it fell behind.
`python3 tests/llm/streams.py PUMPHOUSE [STREAMS]`."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from multiprocessing import Pipe, Process
from pathlib import Path

SECONDS, TICKS, TOKENS = 20, 10, 10
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def event(text):
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


# Ten tokens, which go out ten times a second.
FIRST, PIECE = event("<response>"), event("word ") * TOKENS
LAST = event("</response>") + b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
LAST += b"data: [DONE]\n\n"


async def provide(pipe, streams):
    writers, everyone = [], asyncio.Event()

    async def connected(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + FIRST)
        writers.append(writer)
        if len(writers) == streams:
            everyone.set()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=streams)
    pipe.send(server.sockets[0].getsockname()[1])
    await everyone.wait()
    begun = time.monotonic()
    for tick in range(SECONDS * TICKS):
        for writer in writers:
            writer.write(PIECE)
        await asyncio.sleep(max(0, begun + (tick + 1) / TICKS - time.monotonic()))
    took = time.monotonic() - begun
    unsent = sum(it.transport.get_write_buffer_size() for it in writers)
    for writer in writers:
        writer.write(LAST)
        writer.close()
    await asyncio.gather(*(it.wait_closed() for it in writers), return_exceptions=True)
    pipe.send((took, unsent))


def provider(pipe, streams):
    asyncio.run(provide(pipe, streams))


def manifest(port, streams):
    model = f'{{use: openai, url: "http://127.0.0.1:{port}/v1", model: m}}'
    limits = f"{{handlers_max: {streams + 100}, agents_at_once: {streams}}}"
    agent = "{use: agent, name: ada, model: m}"
    return f"limits: {limits}\nmodels:\n  m: {model}\nlisteners:\n  - {agent}\n"


def main(program, streams=1_000):
    ours, theirs = Pipe()
    Process(target=provider, args=(theirs, streams), daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "organism.yaml").write_text(manifest(ours.recv(), streams))
        run = [program, "run", "--json", "--listen", "127.0.0.1:0", "--durability", "normal"]
        pump = subprocess.Popen(run, cwd=folder, stdout=subprocess.PIPE, text=True)
        address = json.loads(pump.stdout.readline())["listen"][0]
        ask = '<ada xmlns="https://xml-pipeline.org/ns/ada/v1">Go.</ada>\n' * streams
        send = [program, "send", "--json", "--timeout", "300", "--connect", address]
        came = subprocess.run(send, input=ask, cwd=folder, capture_output=True, text=True).stdout
        took, unsent = ours.recv()
        answers = [json.loads(it) for it in came.splitlines()]
        answers = [it for it in answers if it.get("name") == "response"]
        words = sum(it["payload"].count("word ") + it["payload"].count("word<") for it in answers)
        status = Path(f"/proc/{pump.pid}/status").read_text().splitlines()
        peak = next(int(it.split()[1]) // 1024 for it in status if it.startswith("VmHWM"))
        pump.terminate()
        pump.wait()
    rate = words / took / max(len(answers), 1)
    print(f"{len(answers)} replies at once, {rate:.0f} tokens a second each for {took:.1f} s, "
          f"{unsent} bytes behind at the end; the pump had at most {peak} MiB")


main(Path(sys.argv[1]).resolve(), *map(int, sys.argv[2:]))
