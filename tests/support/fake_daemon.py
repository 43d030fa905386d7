"""A scripted peer for tests of `reminderd run`, speaking Content-Length framing.

usage: fake_daemon.py RULES.json

The rules map a method to a list of actions, one a call; the last one repeats. An action is
an object whose members are carried out in this order:

  "before": [MESSAGE, …]   sends these messages first
  "ask": {method, params}  sends a request and waits for its answer (at most "askSeconds": 0.2
                           when given); the result then is {"answer": …}, null when none came
  "stderr": TEXT           writes a line to stderr
  "exit": STATUS           ends at once
  "raw": TEXT              writes this instead of an answer
  "hang": true             never answers
  "awaitCancel": true      waits for `$/cancelRequest`, then answers -32800
  "echo": true             answers with the params
  "error": OBJECT          answers with this error
  "result": VALUE          answers with this result (null when nothing else is said)
  "after": [MESSAGE, …]    sends these messages behind the answer

Members of MESSAGE are completed with "jsonrpc". A notification may have rules too; its
"result" is not sent. `exit` ends with 0 after `shutdown`, 1 without it.
"""

import json
import os
import select
import sys

source = os.fdopen(0, "rb", buffering=0)


def read_exactly(count):
    data = b""
    while len(data) < count:
        piece = source.read(count - len(data))
        if not piece:
            sys.exit(1)
        data += piece
    return data


def receive():
    header = b""
    while not header.endswith(b"\r\n\r\n"):
        header += read_exactly(1)
    length = int(header.split(b":")[1].split(b"\r\n")[0])
    return json.loads(read_exactly(length))


def write(data):
    os.write(1, data)


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rules = json.load(file)
    calls = {}
    shut_down = False
    while True:
        message = receive()
        method = message.get("method")
        if method is None:
            continue
        number = calls.get(method, 0)
        calls[method] = number + 1
        actions = rules.get(method, [{}])
        action = actions[min(number, len(actions) - 1)]
        answer = act(action, message)
        if answer is not None and "id" in message:
            send({"id": message["id"], **answer})
        for following in action.get("after", []):
            send(following)
        shut_down = shut_down or method == "shutdown"
        if method == "exit":
            sys.exit(0 if shut_down else 1)


def act(action, message):
    result = action.get("result")
    for preceding in action.get("before", []):
        send(preceding)
    if "ask" in action:
        send({"id": "ask", **action["ask"]})
        result = {"answer": None}
        if select.select([source], [], [], action.get("askSeconds"))[0]:
            answer = receive()
            result["answer"] = answer.get("result", answer.get("error"))
    if "stderr" in action:
        print(action["stderr"], file=sys.stderr, flush=True)
    if "exit" in action:
        sys.exit(action["exit"])
    if "raw" in action:
        write(action["raw"].encode())
        return None
    if action.get("hang"):
        return None
    if action.get("awaitCancel"):
        cancel = receive()
        assert cancel["method"] == "$/cancelRequest", cancel
        assert cancel["params"]["id"] == message["id"], cancel
        return {"error": {"code": -32800, "message": "cancelled"}}
    if action.get("echo"):
        return {"result": message.get("params")}
    if "error" in action:
        return {"error": action["error"]}
    return {"result": result}


main()
