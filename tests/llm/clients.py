"""Asks a server by a provider's own package, and prints what the package reads, a JSON line for
each question. `python3 tests/llm/clients.py WIRE URL`, with the packages of
tests/llm/requirements.txt; `tests/it/model/clients.rs` has the server and compares."""

import base64
import json
import sys

import anthropic
import ollama
import openai
from google import genai
from google.genai import types

SYSTEM = "Be brief."
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD = {"name": "add", "description": "Adds."}
PNG, PDF = b"\x89PNG", b"%PDF"
ERRORS = ["Answer with 429.", "Answer with 400.", "Fail within."]


def text_of(data):
    return base64.b64encode(data).decode()


def found(text="", thinking="", tools=(), signed=(), usage=None, stop=None):
    read = {"text": text or "", "thinking": thinking or "", "tools": list(tools)}
    return read | {"signed": list(signed), "usage": usage, "stop": stop}


class Anthropic:
    def __init__(self, url):
        self.client = anthropic.Anthropic(base_url=url, api_key="sk-1", max_retries=0)

    def asked(self, messages):
        tools = [ADD | {"input_schema": SCHEMA}]
        asked = {"model": "m", "max_tokens": 64, "system": SYSTEM, "tools": tools}
        return asked | {"messages": messages}

    def read(self, message):
        of = {"thinking": "", "text": ""}
        for block in message.content:
            if block.type in of:
                of[block.type] += getattr(block, block.type)
        calls = [it for it in message.content if it.type == "tool_use"]
        signed = [it.signature for it in message.content if it.type == "thinking"]
        cached = message.usage.cache_read_input_tokens or 0
        usage = [message.usage.input_tokens + cached, message.usage.output_tokens, cached]
        tools = [[it.id, it.name, it.input] for it in calls]
        return message, found(of["text"], of["thinking"], tools, signed, usage, message.stop_reason)

    def stream(self, messages):
        with self.client.messages.stream(**self.asked(messages)) as stream:
            return self.read(stream.get_final_message())

    def whole(self, messages):
        return self.read(self.client.messages.create(**self.asked(messages)))

    def user(self, text):
        return {"role": "user", "content": text}

    def image(self, text):
        def source(media_type, data):
            return {"type": "base64", "media_type": media_type, "data": text_of(data)}

        image = {"type": "image", "source": source("image/png", PNG)}
        document = {"type": "document", "source": source("application/pdf", PDF)}
        return self.user([{"type": "text", "text": text}, image, document])

    def result(self, message):
        block = {"type": "tool_result", "tool_use_id": "c1", "content": "2"}
        return [{"role": "assistant", "content": message.content}, self.user([block])]

    def error(self, error):
        return error.status_code, error.response.headers.get("retry-after"), error.body


class OpenAi:
    def __init__(self, url):
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-1", max_retries=0)

    def error(self, error):
        # An error within a stream has no status.
        response = getattr(error, "response", None)
        after = response.headers.get("retry-after") if response else None
        return getattr(error, "status_code", None), after, error.body


class Chat(OpenAi):
    def asked(self, messages):
        tools = [{"type": "function", "function": ADD | {"parameters": SCHEMA}}]
        messages = [{"role": "system", "content": SYSTEM}, *messages]
        return {"model": "m", "max_tokens": 64, "tools": tools, "messages": messages}

    def read(self, reply):
        message, usage = reply.choices[0].message, reply.usage
        cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else 0
        counts = [usage.prompt_tokens, usage.completion_tokens, cached]
        calls = [(it.id, it.function) for it in message.tool_calls or []]
        tools = [[id, it.name, json.loads(it.arguments)] for id, it in calls]
        # What the package doesn't know it keeps beside the rest.
        thinking = (message.model_extra or {}).get("reasoning_content")
        stop = reply.choices[0].finish_reason
        return message, found(message.content, thinking, tools, (), counts, stop)

    def stream(self, messages):
        options = {"stream_options": {"include_usage": True}}
        with self.client.chat.completions.stream(**self.asked(messages), **options) as stream:
            return self.read(stream.get_final_completion())

    def whole(self, messages):
        return self.read(self.client.chat.completions.create(**self.asked(messages)))

    def user(self, text):
        return {"role": "user", "content": text}

    def image(self, text):
        image = {"url": f"data:image/png;base64,{text_of(PNG)}"}
        pdf = f"data:application/pdf;base64,{text_of(PDF)}"
        file = {"filename": "attached.pdf", "file_data": pdf}
        image = {"type": "image_url", "image_url": image}
        return self.user([{"type": "text", "text": text}, image, {"type": "file", "file": file}])

    def result(self, message):
        call = message.tool_calls[0]
        return [message, {"role": "tool", "tool_call_id": call.id, "content": "2"}]


class Responses(OpenAi):
    def asked(self, messages):
        tools = [{"type": "function", "parameters": SCHEMA, "strict": False} | ADD]
        asked = {"model": "m", "max_output_tokens": 64, "instructions": SYSTEM, "tools": tools}
        return asked | {"input": messages, "store": False}

    def read(self, response):
        if response.status == "failed":
            raise RuntimeError(response.error.message)
        reasoning = [it for it in response.output if it.type == "reasoning"]
        thinking = "".join(part.text for it in reasoning for part in it.summary)
        calls = [it for it in response.output if it.type == "function_call"]
        tools = [[it.call_id, it.name, json.loads(it.arguments)] for it in calls]
        signed = [it.encrypted_content for it in reasoning]
        usage = response.usage
        cached = usage.input_tokens_details.cached_tokens
        counts = [usage.input_tokens, usage.output_tokens, cached]
        read = found(response.output_text, thinking, tools, signed, counts, response.status)
        return response, read

    def stream(self, messages):
        over = ("response.completed", "response.incomplete", "response.failed")
        with self.client.responses.create(**self.asked(messages), stream=True) as stream:
            return self.read([it.response for it in stream if it.type in over][-1])

    def whole(self, messages):
        return self.read(self.client.responses.create(**self.asked(messages)))

    def user(self, text):
        return {"role": "user", "content": text}

    def image(self, text):
        image = f"data:image/png;base64,{text_of(PNG)}"
        pdf = f"data:application/pdf;base64,{text_of(PDF)}"
        image = {"type": "input_image", "image_url": image, "detail": "auto"}
        file = {"type": "input_file", "filename": "attached.pdf", "file_data": pdf}
        return self.user([{"type": "input_text", "text": text}, image, file])

    def result(self, response):
        result = {"type": "function_call_output", "call_id": "c1", "output": "2"}
        return [*response.output, result]

    def error(self, error):
        return (None, None, str(error)) if isinstance(error, RuntimeError) else super().error(error)


class Gemini:
    def __init__(self, url):
        options = types.HttpOptions(base_url=url)
        self.client = genai.Client(api_key="sk-1", http_options=options)

    def asked(self, messages):
        declared = types.FunctionDeclaration(**ADD, parameters_json_schema=SCHEMA)
        config = types.GenerateContentConfig(
            system_instruction=SYSTEM,
            max_output_tokens=64,
            tools=[types.Tool(function_declarations=[declared])],
        )
        return {"model": "m", "contents": messages, "config": config}

    def read(self, chunks):
        parts = [part for it in chunks for part in it.candidates[0].content.parts]
        text = "".join(it.text or "" for it in parts if not it.thought)
        thinking = "".join(it.text or "" for it in parts if it.thought)
        calls = [it.function_call for it in parts if it.function_call]
        signed = [text_of(it.thought_signature) for it in parts if it.thought_signature]
        tools = [[it.id, it.name, it.args] for it in calls]
        last = chunks[-1]
        of = last.usage_metadata
        cached = of.cached_content_token_count or 0
        usage = [of.prompt_token_count, of.candidates_token_count, cached]
        stop = last.candidates[0].finish_reason.value
        return parts, found(text, thinking, tools, signed, usage, stop)

    def stream(self, messages):
        return self.read(list(self.client.models.generate_content_stream(**self.asked(messages))))

    def whole(self, messages):
        return self.read([self.client.models.generate_content(**self.asked(messages))])

    def user(self, text):
        return types.Content(role="user", parts=[types.Part.from_text(text=text)])

    def image(self, text):
        said = self.user(text)
        said.parts.append(types.Part.from_bytes(data=PNG, mime_type="image/png"))
        said.parts.append(types.Part.from_bytes(data=PDF, mime_type="application/pdf"))
        return said

    def result(self, parts):
        response = types.FunctionResponse(id="c1", name="add", response={"result": "2"})
        result = types.Content(role="user", parts=[types.Part(function_response=response)])
        return [types.Content(role="model", parts=parts), result]

    def error(self, error):
        return error.code, error.response.headers.get("retry-after"), error.message


class Ollama:
    def __init__(self, url):
        self.client = ollama.Client(host=url, headers={"Authorization": "Bearer sk-1"})

    def asked(self, messages, is_streamed):
        tools = [{"type": "function", "function": ADD | {"parameters": SCHEMA}}]
        messages = [{"role": "system", "content": SYSTEM}, *messages]
        asked = {"model": "m", "messages": messages, "tools": tools, "stream": is_streamed}
        return asked | {"options": {"num_predict": 64}}

    def read(self, chunks):
        text = "".join(it.message.content or "" for it in chunks)
        thinking = "".join(it.message.thinking or "" for it in chunks)
        calls = [call for it in chunks for call in it.message.tool_calls or []]
        # The package knows no id.
        tools = [["c1", it.function.name, dict(it.function.arguments)] for it in calls]
        last = chunks[-1]
        usage = [last.prompt_eval_count, last.eval_count, 0]
        message = ollama.Message(role="assistant", content=text, tool_calls=calls)
        return message, found(text, thinking, tools, (), usage, last.done_reason)

    def stream(self, messages):
        return self.read(list(self.client.chat(**self.asked(messages, True))))

    def whole(self, messages):
        return self.read([self.client.chat(**self.asked(messages, False))])

    def user(self, text):
        return {"role": "user", "content": text}

    def image(self, text):
        return self.user(text) | {"images": [PNG]}

    def result(self, message):
        return [message, {"role": "tool", "content": "2", "tool_name": "add"}]

    def error(self, error):
        return (None if error.status_code == -1 else error.status_code), None, error.error


CLIENTS = {
    "anthropic-messages": Anthropic,
    "openai-chat": Chat,
    "openai-responses": Responses,
    "gemini": Gemini,
    "ollama": Ollama,
}


def said(body):
    """What an error says, wherever a package has it."""
    while isinstance(body, dict):
        body = body.get("error") or body.get("message")
    return body


def main(wire, url):
    client = CLIENTS[wire](url)
    question = client.user("1+1?")
    message, read = client.stream([question])
    print(json.dumps({"asked": "stream"} | read))
    print(json.dumps({"asked": "result"} | client.stream([question, *client.result(message)])[1]))
    print(json.dumps({"asked": "image"} | client.stream([client.image("Look.")])[1]))
    print(json.dumps({"asked": "whole"} | client.whole([question])[1]))
    for text in ERRORS:
        try:
            read = client.stream([client.user(text)])[1]
            print(json.dumps({"asked": text, "error": None} | read))
        except Exception as error:
            status, after, body = client.error(error)
            name = type(error).__name__
            told = {"error": name, "status": status, "retry_after": after, "said": said(body)}
            print(json.dumps({"asked": text} | told))


main(*sys.argv[1:])
