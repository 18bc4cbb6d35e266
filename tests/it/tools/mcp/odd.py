"""An MCP server for tests whose answers have another form: its argument says which."""

import json
import os
import sys
import threading
import time

HOW = sys.argv[1]
TOOL = {"name": "pay", "description": "Pays.", "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"idempotentHint": True}}
OTHER = {"name": "wait", "description": "Waits.", "inputSchema": {"type": "object", "properties": {}}}


def say(text):
    sys.stdout.write((text if isinstance(text, str) else json.dumps(text)) + "\n")
    sys.stdout.flush()


def call(name, id):
    pong = {"content": [{"type": "text", "text": "pong"}]}
    if name == "wait":
        while not os.path.exists("paid"):
            time.sleep(0.01)
        time.sleep(0.2)
        return say({"id": id, "result": pong})
    with open("paid", "a") as file:
        file.write("paid\n")
    if HOW == "dies":
        print("no money left", file=sys.stderr, flush=True)
        os._exit(3)
    if HOW == "dies once" and open("paid").read().count("paid") == 1:
        os._exit(3)
    if HOW == "text id":
        return say({"id": str(id), "result": pong})
    if HOW == "text":
        return say({"id": id, "result": {"content": "pong"}})
    if HOW == "part":
        return say({"id": id, "result": {"content": {"type": "text", "text": "pong"}}})
    if HOW == "texts":
        return say({"id": id, "result": {"content": ["pong"]}})
    if HOW == "old":
        return say({"id": id, "result": {"toolResult": pong}})
    if HOW == "old text":
        return say({"id": id, "result": {"toolResult": "pong"}})
    if HOW == "nothing":
        return say({"id": id, "result": None})
    if HOW == "broken":
        return say('{"result": {"content": [{"id": 99}, }, "id": %d}' % id)
    if HOW == "no id":
        return say({"id": None, "error": {"code": -32700, "message": "not today"}})
    if HOW == "mute":
        return None
    return say({"id": id, "result": pong})


def main():
    if HOW == "fails":
        print("first line\nImportError: no module named tea\n", file=sys.stderr, flush=True)
        sys.exit(1)
    if os.path.exists("hang"):
        time.sleep(600)
    for line in sys.stdin:
        ask = json.loads(line)
        method, id = ask.get("method"), ask.get("id")
        if id is None or method is None:
            continue
        if method == "initialize":
            say({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": {},
                                      "serverInfo": {"name": "test", "version": "1"}}})
        elif method == "tools/list":
            tool = {**TOOL, "description": "Pays twice."} if os.path.exists("changed") else TOOL
            say({"id": id, "result": {"tools": [tool, OTHER]}})
        elif method == "ping":
            say({"id": id, "result": {}})
        else:
            threading.Thread(target=call, args=(ask["params"]["name"], id)).start()


main()
