"""Measures how fast `pumphouse inspect stream` reads recorded replies, on one core: megabytes a
second per wire. `python3 tests/llm/speed.py PUMPHOUSE FOLDER [MB]`; the folder has an index.jsonl.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

WIRES = ["anthropic-messages", "openai-chat", "openai-responses", "gemini", "ollama"]
LARGEST = 10


def recordings(folder, wire):
    """The largest replies of a wire."""
    rows = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
    is_mine = lambda it: it["wire"] == wire or wire == "ollama" and "/ollama/" in it["file"]
    mine = [folder / it["file"] for it in rows if is_mine(it) and it["status"] == 200]
    return sorted(mine, key=lambda it: it.stat().st_size)[-LARGEST:]


def seconds(program, wire, files):
    command = [program, "inspect", "stream", "--wire", wire, "-"]
    begun = time.monotonic()
    text = "\n".join(files)
    subprocess.run(command, input=text, check=True, stdout=subprocess.DEVNULL, text=True)
    return time.monotonic() - begun


def main(program, folder, megabytes=100):
    print("| wire | recordings | bytes of one | MB/s |")
    print("| --- | ---: | ---: | ---: |")
    for wire in WIRES:
        files = recordings(folder, wire)
        once = sum(it.stat().st_size for it in files)
        times = megabytes * 1_000_000 // once + 1
        names = [str(it) for it in files] * times
        best = min(seconds(program, wire, names) for _ in range(3))
        rate = once * times / best / 1e6
        print(f"| `{wire}` | {len(files)} | {once // len(files)} | {rate:.0f} |")


main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
