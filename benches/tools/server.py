"""An MCP server with one tool, which says a text again."""

import json
import sys

WORDS = {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}
TOOLS = [{"name": "say", "description": "Says it again.", "inputSchema": WORDS}]


def result(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "words", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    return {"content": [{"type": "text", "text": params["arguments"]["words"]}]}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result(asked["method"], asked.get("params"))}
        print(json.dumps(answer), flush=True)
