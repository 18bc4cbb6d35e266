"""Compares what `pumphouse inspect stream` reads of recorded streams with what the recordings'
index expects. `python3 tests/llm/compare.py PUMPHOUSE FOLDER`; the folder has an index.jsonl."""

import json
import subprocess
import sys
from pathlib import Path

WIRES = ["anthropic-messages", "openai-chat", "openai-responses"]
CHUNKS = ["whole", "1", "7", "random:1"]
KEYS = ["text", "thinking", "refusal", "stop", "error", "terminal"]


def differences(expected, found):
    """What is read otherwise than expected."""
    wrong = [key for key in KEYS if expected[key] != found.get(key)]
    calls = [(it["id"], it["name"], it["args"]) for it in expected["tools"]]
    if calls != [(it["id"], it["name"], it["arguments"]) for it in found["tools"]]:
        wrong.append("tools")
    return wrong


def main(program, folder):
    rows = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
    print("| wire | recordings | as expected |", *[f" {it} |" for it in CHUNKS], sep="")
    for wire in WIRES:
        mine = [it for it in rows if it["wire"] == wire]
        files = [str(folder / it["file"]) for it in mine]
        same, odd = [], {}
        for chunks in CHUNKS:
            command = [program, "inspect", "stream", "--wire", wire, "--chunks", chunks, *files]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found = [json.loads(line) for line in out.splitlines()]
            wrong = [differences(a["expected"], b) for a, b in zip(mine, found, strict=True)]
            same.append(sum(not it for it in wrong))
            odd |= {a["file"]: it for a, it in zip(mine, wrong) if it}
        print(f"| {wire} | {len(mine)} | {min(same)} |", *[f" {it} |" for it in same], sep="")
        for file, keys in odd.items():
            print(f"  {file}: {', '.join(keys)}")


main(sys.argv[1], Path(sys.argv[2]))
