"""A machine with one agent on it, the real daemon, and a scripted model provider on the loopback."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
PROVIDER = HERE.parent / "support" / "model_provider.py"
REMINDERD = os.environ["REMINDERD"]
AGENTS = pathlib.Path(os.environ["AGENTS"])
# How long one run of an agent may take, in seconds.
PATIENCE = 120


class Machine:
    """Its home, its project, its daemon and the requests that reached the model."""

    def __init__(self, steps, configuration=""):
        # Agents that refuse to work below the system's own temporary directory are content here.
        below = HERE.parents[1] / "target" / "tmp" / "agents"
        below.mkdir(parents=True, exist_ok=True)
        self.home = pathlib.Path(tempfile.mkdtemp(dir=below))
        self.project = self.home / "project"
        self.project.mkdir()
        self.state = self.home / "state" / "reminderd"
        (self.home / "config" / "reminderd").mkdir(parents=True)
        (self.home / "config" / "reminderd" / "reminderd.toml").write_text(configuration)
        (self.home / "steps.json").write_text(self.here(json.dumps(steps)))
        self.requests_file = self.home / "requests.jsonl"
        self.provider = subprocess.Popen(
            [sys.executable, PROVIDER, self.home / "steps.json", self.requests_file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self.provider.stdout.readline())
        (self.home / "bin").mkdir()
        (self.home / "bin" / "reminderd").symlink_to(pathlib.Path(REMINDERD).resolve())
        self.environment = {
            "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.home / "run"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
        }

    def close(self):
        """Ends what runs, and takes everything away."""
        self.provider.communicate()
        subprocess.run(["pkill", "-CONT", "-f", self.daemon_pattern()], check=False)
        subprocess.run(["pkill", "-f", self.daemon_pattern()], check=False)
        shutil.rmtree(self.home, ignore_errors=True)

    def daemon_pattern(self):
        """What the command line of this machine's daemon matches."""
        return f"serve --detached .*{self.state}"

    def here(self, text):
        """A text with the paths of this machine."""
        text = text.replace("$PROJECT", str(self.project))
        return text.replace("$DAEMON", f"'serve --detached .*{self.state}'")

    def reminderd(self, *arguments):
        """Runs a command of reminderd, and returns what it prints."""
        return subprocess.run(
            [REMINDERD, *arguments],
            env=self.environment,
            cwd=self.project,
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        ).stdout

    def run(self, *command, cancelled_after=None, **environment):
        """Runs an agent. With `cancelled_after` it is interrupted when so many requests went out."""
        process = subprocess.Popen(
            [AGENTS / command[0], *command[1:]],
            env={**self.environment, **environment},
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if cancelled_after is not None:
            while process.poll() is None and len(self.requests()) < cancelled_after:
                try:
                    process.wait(0.05)
                except subprocess.TimeoutExpired:
                    pass
            process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)
        return output

    def requests(self):
        """The bodies of the requests that reached the model, in order."""
        if not self.requests_file.exists():
            return []
        lines = self.requests_file.read_text().splitlines()
        return [json.loads(line)["body"] for line in lines]

    def wait_for_requests(self, count):
        """Waits until so many requests reached the model."""
        end = time.monotonic() + PATIENCE
        while len(self.requests()) < count:
            if time.monotonic() > end:
                raise TimeoutError(f"{len(self.requests())} of {count} requests came")
            time.sleep(0.05)

    def told(self):
        """What reminderd says was told: the texts, oldest first."""
        lines = self.reminderd("log", "--json", "--bodies").splitlines()
        return [json.loads(line)["body"] for line in lines]

    def troubles(self):
        """What the hook command could not do."""
        log = self.state / "hook.log"
        return log.read_text() if log.exists() else ""
