"""A scripted stand-in for a model provider, on the loopback.

usage: model_provider.py STEPS.json REQUESTS.jsonl

It prints its port, then answers until its input ends, in whichever form it is asked:

  POST …/chat/completions                           OpenAI chat completions
  POST …/responses                                  OpenAI responses
  POST …/messages                                   Anthropic messages
  POST …/models/NAME:generateContent                Gemini
  POST …/models/NAME:streamGenerateContent          Gemini, streamed

The others stream when the request says `"stream": true`. Each request is appended to
REQUESTS.jsonl as `{"path": …, "body": …}` before it is answered. The steps are a list; each
request takes the next one, and after the last the answer is the text "done". A step is one of:

  {"text": TEXT}                          the model says this
  {"calls": [{"name": …, "input": {…}}]}  the model calls these tools; in the responses API with the
                                          call's "namespace", where it has one
  {"status": 500, "text": TEXT}           an error of the provider
  {"hang": SECONDS, …}                    any of them, so much later
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USAGE = {"input": 11, "output": 7}


def call_id(index):
    return f"call_{index}"


def openai_chat(step, stream):
    """The answer of the chat completions API, or the events of its stream."""
    message = {"role": "assistant", "content": step.get("text")}
    if "calls" in step:
        message["tool_calls"] = [
            {
                "index": index,
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["input"])},
            }
            for index, call in enumerate(step["calls"])
        ]
    finish = "tool_calls" if "calls" in step else "stop"
    usage = {
        "prompt_tokens": USAGE["input"],
        "completion_tokens": USAGE["output"],
        "total_tokens": USAGE["input"] + USAGE["output"],
    }
    common = {"id": "chat", "created": 0, "model": "scripted"}
    if not stream:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {**common, "object": "chat.completion", "choices": [choice], "usage": usage}
    chunk = {**common, "object": "chat.completion.chunk"}
    return [
        {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {
            **chunk,
            "choices": [{"index": 0, "delta": {}, "finish_reason": finish}],
            "usage": usage,
        },
        "[DONE]",
    ]


def openai_responses(step, stream):
    """The answer of the responses API, or the events of its stream."""
    if "calls" in step:
        items = [
            {
                "type": "function_call",
                "id": f"item_{call['id']}",
                "call_id": call["id"],
                "name": call["name"],
                "arguments": json.dumps(call["input"]),
                "status": "completed",
                **({"namespace": call["namespace"]} if "namespace" in call else {}),
            }
            for call in step["calls"]
        ]
    else:
        text = {"type": "output_text", "text": step["text"], "annotations": []}
        items = [
            {
                "type": "message",
                "id": "item",
                "role": "assistant",
                "status": "completed",
                "content": [text],
            }
        ]
    response = {
        "id": "response",
        "object": "response",
        "created_at": 0,
        "model": "scripted",
        "status": "completed",
        "output": items,
        "usage": {
            "input_tokens": USAGE["input"],
            "output_tokens": USAGE["output"],
            "total_tokens": USAGE["input"] + USAGE["output"],
        },
    }
    if not stream:
        return response
    started = {**response, "status": "in_progress", "output": []}
    events = [{"type": "response.created", "response": started}]
    for index, item in enumerate(items):
        place = {"output_index": index}
        events.append({"type": "response.output_item.added", **place, "item": item})
        if item["type"] == "message":
            events.append(
                {
                    "type": "response.output_text.delta",
                    **place,
                    "item_id": item["id"],
                    "content_index": 0,
                    "delta": step["text"],
                }
            )
        events.append({"type": "response.output_item.done", **place, "item": item})
    events.append({"type": "response.completed", "response": response})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def anthropic_messages(step, stream):
    """The answer of the messages API, or the events of its stream."""
    if "calls" in step:
        blocks = [
            {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["input"]}
            for call in step["calls"]
        ]
    else:
        blocks = [{"type": "text", "text": step["text"]}]
    stop = "tool_use" if "calls" in step else "end_turn"
    usage = {"input_tokens": USAGE["input"], "output_tokens": USAGE["output"]}
    message = {
        "id": "message",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }
    if not stream:
        return message
    events = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    ]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            empty = {**block, "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    ended = {"stop_reason": stop, "stop_sequence": None}
    return events + [
        {"type": "message_delta", "delta": ended, "usage": usage},
        {"type": "message_stop"},
    ]


def gemini(step, stream):
    """The answer of `generateContent`, or the one event of its stream."""
    if "calls" in step:
        parts = [
            {"functionCall": {"name": call["name"], "args": call["input"]}}
            for call in step["calls"]
        ]
    else:
        parts = [{"text": step["text"]}]
    candidate = {
        "index": 0,
        "content": {"role": "model", "parts": parts},
        "finishReason": "STOP",
    }
    usage = {
        "promptTokenCount": USAGE["input"],
        "candidatesTokenCount": USAGE["output"],
        "totalTokenCount": USAGE["input"] + USAGE["output"],
    }
    answer = {"candidates": [candidate], "usageMetadata": usage}
    return [answer] if stream else answer


FORMS = {
    "/chat/completions": openai_chat,
    "/responses": openai_responses,
    "/messages": anthropic_messages,
    ":generateContent": gemini,
    ":streamGenerateContent": gemini,
}


class Script:
    """The steps that are left and the file of requests."""

    def __init__(self, steps, requests):
        self.steps = steps
        self.requests = requests
        self.calls = 0
        self.lock = threading.Lock()

    def take(self, path, body):
        """Note a request and return the step that answers it, its calls with ids."""
        with self.lock:
            with open(self.requests, "a", encoding="utf-8") as requests:
                print(json.dumps({"path": path, "body": body}), file=requests)
            step = self.steps.pop(0) if self.steps else {"text": "done"}
            for call in step.get("calls", []):
                self.calls += 1
                call["id"] = call_id(self.calls)
            return step


class Provider(BaseHTTPRequestHandler):
    """One connection of a client."""

    script: Script
    # An answer goes out in one piece, its head included: how clients put pieces together is
    # theirs to test.
    wbufsize = 1 << 20

    def log_message(self, *_):
        """Standard error is for faults alone."""

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))
        path = self.path.split("?")[0]
        form = next((form for end, form in FORMS.items() if path.endswith(end)), None)
        if form is None:
            return self.answer(404, {"error": {"type": "not_found", "message": path}})
        step = self.script.take(path, body)
        time.sleep(step.get("hang", 0))
        if "status" in step:
            fault = {"type": "server_error", "message": step["text"]}
            return self.answer(step["status"], {"type": "error", "error": fault})
        stream = path.endswith(":streamGenerateContent") or body.get("stream") is True
        answer = form(step, stream)
        return self.stream(answer) if stream else self.answer(200, answer)

    def answer(self, status, body):
        """Send one JSON document."""
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events):
        """Send server-sent events, each under its type where it has one."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in events:
            if isinstance(event, dict) and "type" in event:
                self.wfile.write(f"event: {event['type']}\n".encode())
            data = event if isinstance(event, str) else json.dumps(event)
            self.wfile.write(f"data: {data}\n\n".encode())


def main():
    with open(sys.argv[1], encoding="utf-8") as steps:
        Provider.script = Script(json.load(steps), sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
