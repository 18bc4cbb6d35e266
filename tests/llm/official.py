"""Compares what `pumphouse inspect stream` reads of recorded streams with what the providers' own
packages read of the same bytes. `python3 tests/llm/official.py PUMPHOUSE FOLDER [WIRE]`, with the
packages of tests/llm/requirements.txt; the folder has an index.jsonl."""

import base64
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anthropic
import ollama
import openai
from google import genai
from google.genai import types

served = {"body": b"", "type": "text/event-stream"}


class Handler(BaseHTTPRequestHandler):
    """Answers every request with the recording at hand."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        self.send_header("content-type", served["type"])
        self.send_header("content-length", str(len(served["body"])))
        self.end_headers()
        self.wfile.write(served["body"])


def found():
    return {"text": "", "thinking": "", "tools": [], "usage": None, "stop": None, "signed": []}


def usage(input, output, cached=0, reasoning=0):
    counts = {"input": input, "output": output, "cached": cached, "reasoning": reasoning}
    return {key: it or 0 for key, it in counts.items()}


def read_anthropic(url):
    client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
    with client.messages.stream(**asked) as stream:
        message = stream.get_final_message()
    it = found()
    for block in message.content:
        it["text"] += getattr(block, "text", None) or ""
        it["thinking"] += getattr(block, "thinking", None) or ""
        it["signed"] += [getattr(block, key, None) for key in ("signature", "data")]
        if block.type.endswith("tool_use"):
            it["tools"].append((block.name, block.input))
    of = message.usage
    kept = of.cache_read_input_tokens or 0
    read = (of.input_tokens or 0) + (of.cache_creation_input_tokens or 0) + kept
    it["usage"] = usage(read, of.output_tokens, kept)
    it["stop"] = message.stop_reason
    return it


def read_chat(url):
    client = openai.OpenAI(base_url=url, api_key="x", max_retries=0)
    messages = [{"role": "user", "content": "?"}]
    it, calls = found(), {}
    for chunk in client.chat.completions.create(model="m", messages=messages, stream=True):
        if chunk.usage:
            of = chunk.usage
            read, wrote = of.prompt_tokens_details, of.completion_tokens_details
            cached = read.cached_tokens if read else 0
            thought = wrote.reasoning_tokens if wrote else 0
            it["usage"] = usage(of.prompt_tokens, of.completion_tokens, cached, thought)
        # We ask for one reply.
        for choice in [it for it in chunk.choices or [] if it.index == 0]:
            it["text"] += choice.delta.content or ""
            it["stop"] = choice.finish_reason or it["stop"]
            for call in choice.delta.tool_calls or []:
                mine = calls.setdefault(call.index, ["", ""])
                mine[0] += call.function.name or ""
                mine[1] += call.function.arguments or ""
    it["tools"] = [(name, arguments) for name, arguments in calls.values()]
    return it


THOUGHTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


def read_responses(url):
    client = openai.OpenAI(base_url=url, api_key="x", max_retries=0)
    it = found()
    for event in client.responses.create(model="m", input="?", stream=True):
        if event.type == "response.output_text.delta":
            it["text"] += event.delta
        elif event.type in THOUGHTS:
            it["thinking"] += event.delta
        elif event.type == "response.output_item.done" and event.item.type == "function_call":
            it["tools"].append((event.item.name, event.item.arguments))
        elif event.type == "response.output_item.done" and event.item.type == "reasoning":
            it["signed"].append(event.item.encrypted_content)
        elif event.type in ("response.completed", "response.incomplete"):
            of = event.response.usage
            cached, thought = of.input_tokens_details, of.output_tokens_details
            it["usage"] = usage(
                of.input_tokens,
                of.output_tokens,
                cached.cached_tokens if cached else 0,
                thought.reasoning_tokens if thought else 0,
            )
            it["stop"] = event.response.status
    return it


def read_gemini(url):
    client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=url))
    it = found()
    for chunk in client.models.generate_content_stream(model="m", contents="?"):
        for candidate in (chunk.candidates or [])[:1]:
            parts = candidate.content.parts if candidate.content else None
            for part in parts or []:
                if part.thought_signature:
                    it["signed"].append(base64.b64encode(part.thought_signature).decode())
                if part.text:
                    it["thinking" if part.thought else "text"] += part.text
                if part.executable_code:
                    it["tools"].append(("code_execution", part.executable_code.code))
                if part.function_call:
                    it["tools"].append((part.function_call.name, part.function_call.args or {}))
            if candidate.finish_reason:
                it["stop"] = candidate.finish_reason.value
        of = chunk.usage_metadata
        if of:
            thought = of.thoughts_token_count or 0
            read = (of.prompt_token_count or 0) + (of.tool_use_prompt_token_count or 0)
            wrote = (of.candidates_token_count or 0) + thought
            it["usage"] = usage(read, wrote, of.cached_content_token_count, thought)
    return it


def read_ollama(url):
    it = found()
    messages = [{"role": "user", "content": "?"}]
    for chunk in ollama.Client(host=url).chat(model="m", messages=messages, stream=True):
        it["text"] += chunk.message.content or ""
        it["thinking"] += chunk.message.thinking or ""
        for call in chunk.message.tool_calls or []:
            it["tools"].append((call.function.name, dict(call.function.arguments)))
        if chunk.done:
            it["usage"] = usage(chunk.prompt_eval_count, chunk.eval_count)
            it["stop"] = chunk.done_reason
    return it


READERS = {
    "anthropic-messages": read_anthropic,
    "openai-chat": read_chat,
    "openai-responses": read_responses,
    "gemini": read_gemini,
    "ollama": read_ollama,
}


def value(arguments):
    """Arguments by what they say: packages give some of them read."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


SIGNED = ["signature", "data", "encrypted_content", "thoughtSignature"]


def signatures(all):
    """What was signed, in order, without those that are empty, in one alphabet of base64: a package
    decodes some."""
    return [it.replace("+", "-").replace("/", "_").rstrip("=") for it in all if it]


def differences(wire, theirs, ours):
    theirs["signed"] = signatures(theirs["signed"])
    ours["signed"] = signatures(it.get(key) for it in ours["signed"] for key in SIGNED)
    # OpenAI's package knows no reasoning in chat completions: others have added that.
    keys = ["text", "usage", "stop", "signed"] + ["thinking"] * (wire != "openai-chat")
    ours["stop"] = (ours["stop"] or "").split(":")[0] or None
    wrong = [key for key in keys if theirs[key] != ours[key]]
    if [(name, value(it)) for name, it in theirs["tools"]] != [
        (it["name"], value(it["arguments"])) for it in ours["tools"]
    ]:
        wrong.append("tools")
    return wrong


def main(program, folder, wires):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    rows = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
    print("| wire | recordings | refused by the package | the same | signatures |")
    for wire in wires:
        is_mine = lambda it: it["wire"] == wire or wire == "ollama" and "/ollama/" in it["file"]
        mine = [it for it in rows if is_mine(it) and it["status"] == 200]
        refused, same, signed, odd = 0, 0, 0, []
        for row in mine:
            path = folder / row["file"]
            served["body"] = path.read_bytes()
            served["type"] = "application/x-ndjson" if wire == "ollama" else "text/event-stream"
            command = [program, "inspect", "stream", "--wire", wire, "--signed", str(path)]
            ours = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            try:
                theirs = READERS[wire](url)
            except Exception as error:  # Whatever a package makes of a stream that it doesn't take.
                refused += 1
                odd.append(f"  {row['file']}: {type(error).__name__}: {str(error)[:90]}")
                continue
            wrong = differences(wire, theirs, ours)
            same += not wrong
            signed += len(theirs["signed"])
            odd += [f"  {row['file']}: {', '.join(wrong)}"] * bool(wrong)
            if wrong and "-v" in sys.argv:
                odd += [f"    {key}: {theirs[key]!r:.300} | {ours[key]!r:.300}" for key in wrong]
        print(f"| {wire} | {len(mine)} | {refused} | {same} | {signed} |", *odd, sep="\n")


arguments = [it for it in sys.argv[1:] if it != "-v"]
main(arguments[0], Path(arguments[1]), arguments[2:] or list(READERS))
