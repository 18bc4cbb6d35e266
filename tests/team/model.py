"""Models of a team, over the wire of OpenAI's chat completions: what each says depends on what it
is shown. `python3 model.py PORT`; each reply is a line on the standard output."""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

JOB_TURNS = 120
state = {"limited": False, "replies": 0}
lock = threading.Lock()


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(it.get("text", "") for it in content)


def action(id, name, parameters, mode="sync"):
    body = json.dumps({"name": name, "parameters": parameters})
    return f'<action id="{id}" mode="{mode}">{body}</action>'


def lead(turn, shown):
    if turn == 0:
        asks = [
            action("a", "anna", {"text": "How long is a day on Mars, in minutes?"}, "async"),
            action("b", "ben", {"text": "What does the archive say of 1987?"}, "async"),
            action("c", "cleo", {"text": "How many minutes has a week?"}, "async"),
            action("sum", "coder", {"text": "Add up the numbers from 1 on."}, "async"),
        ]
        return "<thought>All four can work side by side.</thought>" + "".join(asks)
    done = all(f'<action-result id="{it}"' in shown for it in ("a", "b", "c", "sum"))
    if done and 'id="more"' not in shown:
        return "<thought>The coder is done; there is more to add.</thought>" + action(
            "more", "coder", {"text": "Add up the next numbers, too."}
        )
    return "<thought>I wait for the others.</thought>"


def researcher(turn, shown, who):
    if who == "ben":
        if turn == 0:
            return action("old", "archive", {"text": "1987"})
        if "The harvest" not in shown:
            return "<response>The archive can't be read.</response>"
        return "<response>The archive says that the harvest of 1987 was poor.</response>"
    question = {"anna": "24 * 60 + 39", "cleo": "7 * 24 * 60"}[who]
    if turn == 0:
        return action("n", "calculate", {"expression": question})
    return f"<response>It is ${{n}} minutes, says {who}.</response>"


def coder(turn):
    if turn < JOB_TURNS:
        return {"name": "calculate", "arguments": json.dumps({"expression": f"{turn} + {turn + 1}"})}
    return f"I added {JOB_TURNS} pairs up."


def said(asked):
    messages = asked["messages"]
    turn = sum(1 for it in messages if it["role"] == "assistant")
    shown = "\n".join(text_of(it) for it in messages[1:])
    system = text_of(messages[0])
    model = asked["model"]
    if model == "lead":
        return lead(turn, shown)
    if model == "coder":
        return coder(turn)
    who = next(it for it in ("anna", "ben", "cleo") if f"You are {it}." in system)
    with lock:
        first = who == "anna" and turn == 1 and not state["limited"]
        state["limited"] |= first
    return None if first else researcher(turn, shown, who)


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = said(asked)
        time.sleep(0.02)
        if reply is None:
            print(asked["model"], "429", flush=True)
            self.send_response(429)
            self.send_header("retry-after", "60")
            self.send_header("content-length", "0")
            self.end_headers()
            return
        with lock:
            state["replies"] += 1
            print(asked["model"], state["replies"], flush=True)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        if isinstance(reply, dict):
            call = {"index": 0, "id": f"call_{state['replies']}", "type": "function", "function": reply}
            deltas, finish = [{"tool_calls": [call]}], "tool_calls"
        else:
            deltas = [{"content": reply[at : at + 40]} for at in range(0, len(reply), 40)]
            finish = "stop"
        chunks = [{"choices": [{"index": 0, "delta": it}]} for it in deltas]
        usage = {"prompt_tokens": len(json.dumps(asked)) // 4, "completion_tokens": len(str(reply)) // 4}
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        chunks.append({"choices": [], "usage": usage})
        lines = [json.dumps(it) for it in chunks] + ["[DONE]"]
        try:
            for it in lines:
                self.wfile.write(f"data: {it}\n\n".encode())
        except BrokenPipeError:
            # The pump was killed meanwhile.
            pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
