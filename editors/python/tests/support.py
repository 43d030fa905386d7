"""What the tests share: a private daemon, stand-ins for broken ones, waiting for conditions."""

import atexit
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
REMINDERD = os.environ.get("REMINDERD", str(TOP / "target/debug/reminderd"))
PATIENCE_SECONDS = 20.0
"""How long a condition may take to hold before a test fails; no sound daemon takes as long."""


def directory():
    """An empty directory, which goes when the tests are over."""
    place = tempfile.mkdtemp(prefix="reminderd-python-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def private_env():
    """An environment in which a daemon has its own state, socket and configuration."""
    place = directory()
    return dict(os.environ, XDG_CONFIG_HOME=place, XDG_RUNTIME_DIR=place, XDG_STATE_HOME=place)


def stand_in(program):
    """The command of a stand-in that runs a program of Python."""
    return [sys.executable, "-c", program]


OTHER_VERSION = stand_in("""
import json, sys
asked = json.loads(sys.stdin.readline())
error = {"code": -32602, "message": "version 1 is not spoken here", "data": {"kind": "version"}}
print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
sys.stdin.read()
""")

BROKEN = [
    ("is not there", ["/nowhere/reminderd"], "does not start: No such file"),
    ("ends at once", stand_in("raise SystemExit('no room')"), "status 1: no room"),
    ("never answers", stand_in("import sys; sys.stdin.read()"), "not answered within 0.05 s"),
    ("speaks another version", OTHER_VERSION, "version 1 is not spoken here"),
    ("talks nonsense", stand_in("print('hello' * 9999)"), "says what can't be read"),
]


def until(condition):
    """Waits until a condition holds, and gives what it gave."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError("a condition did not come to hold")
        time.sleep(0.01)
    return value


class LateDaemon:
    """A daemon whose WAITs stay open until they are cancelled, and what it was sent."""

    def __init__(self):
        self._log = Path(directory()) / "sent.jsonl"
        late = str(TOP / "tests/support/late_daemon.py")
        self.command = ["python3", late, str(self._log), REMINDERD]

    def sent(self, method):
        """The first message of that method, or None."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        # The last line may still be being written.
        messages = [json.loads(line) for line in lines if line.endswith("}")]
        return next((each for each in messages if each.get("method") == method), None)
