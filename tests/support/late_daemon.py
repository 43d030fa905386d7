#!/usr/bin/env python3
"""A daemon whose answers to WAITs come too late, for tests of clients.

    late_daemon.py LOG COMMAND…

Starts COMMAND, a real daemon, and passes everything on in both directions, but holds each answer to
`reminder/wait` until the client has cancelled that request. What the client sends is written to
LOG, one JSON message a line. Both framings of the protocol are understood.
"""

import json
import subprocess
import sys
import threading


def messages(stream):
    """Each message of a stream, as its bytes with framing and as JSON."""
    while first := stream.readline():
        if first.startswith(b"{"):
            yield first, json.loads(first)
            continue
        head, length = first, 0
        while True:
            name, _, value = head.splitlines()[-1].partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            line = stream.readline()
            head += line
            if line in (b"\r\n", b"\n", b""):
                break
        body = stream.read(length)
        yield head + body, json.loads(body)


def main():
    log, *command = sys.argv[1:]
    daemon = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lock = threading.Lock()
    waits, cancelled, held = set(), set(), {}

    def write(data):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def answers():
        for data, message in messages(daemon.stdout):
            with lock:
                number = message.get("id") if "method" not in message else None
                if number in waits and number not in cancelled:
                    held[number] = data
                else:
                    write(data)

    passing = threading.Thread(target=answers, daemon=True)
    passing.start()
    with open(log, "a", encoding="utf-8") as lines:
        for data, message in messages(sys.stdin.buffer):
            lines.write(json.dumps(message) + "\n")
            lines.flush()
            with lock:
                if message.get("method") == "reminder/wait":
                    waits.add(message["id"])
                if message.get("method") == "$/cancelRequest" and message["params"]["id"] in waits:
                    # For the daemon it comes too late: its answer is under way.
                    cancelled.add(message["params"]["id"])
                    write(held.pop(message["params"]["id"], b""))
                    continue
            daemon.stdin.write(data)
            daemon.stdin.flush()
    daemon.stdin.close()
    passing.join()
    return daemon.wait()


if __name__ == "__main__":
    sys.exit(main())
