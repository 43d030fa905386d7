"""pi: what counts is what stands in the request body."""

import json
import os
import signal
import subprocess
import unittest

from machine import HERE, Machine

CONFIGURATION = """
[[reminders]]
id = "round"
body = "This is round {{ turn }}."
policy = "always"
maxPerTurn = 1
"""
EXTENSION = HERE.parents[1] / "editors" / "pi"
# What the extension of somebody else gives: it is told when it changed.
OTHER = """
import { readFileSync } from "node:fs";
export default function (pi) {
  pi.events.on("reminderd:ready", () => {
    pi.events.emit("reminderd:generator", {
      reminder: { id: "weather" },
      compute: () => readFileSync("weather.txt", "utf8"),
    });
    pi.events.emit("reminderd:report", {
      method: "mode/set",
      params: { mode: "plan" },
    });
  });
}
"""


def shell(*commands):
    """A step in which the model runs commands, in one batch."""
    return {"calls": [{"name": "bash", "input": {"command": command}} for command in commands]}


class Pi(unittest.TestCase):
    """Each test is one conversation."""

    def begin(self, steps):
        """A machine with the extension."""
        self.machine = machine = Machine(steps, CONFIGURATION)
        self.addCleanup(machine.close)
        # Nothing is looked up outside, neither updates nor models.
        machine.environment["PI_OFFLINE"] = "1"
        machine.environment["PI_TELEMETRY"] = "0"
        settings = machine.home / ".pi" / "agent"
        settings.mkdir(parents=True)
        model = {"id": "scripted", "contextWindow": 128000, "maxTokens": 1000}
        provider = {
            "baseUrl": f"http://127.0.0.1:{machine.port}/v1",
            "api": "openai-completions",
            "apiKey": "scripted",
            "models": [model],
        }
        (settings / "models.json").write_text(json.dumps({"providers": {"scripted": provider}}))
        (settings / "settings.json").write_text(json.dumps({"retry": {"enabled": False}}))
        machine.run("pi", "install", str(EXTENSION))
        self.extensions = []
        self.begun = False

    def prompt(self, text, **options):
        """One prompt of the session, the first one or a resumed one."""
        resumed = ["--continue"] if self.begun else []
        self.begun = True
        model = ["--provider", "scripted", "--model", "scripted"]
        command = ["pi", *self.extensions, *model, *resumed, "--print", text]
        return self.machine.run(*command, **options)

    def texts(self, number):
        """The role and the text of each message of a request, in order."""
        texts = []
        for message in self.machine.requests()[number]["messages"]:
            content = message.get("content") or ""
            if not isinstance(content, str):
                content = "".join(part.get("text", "") for part in content)
            texts.append((message["role"], content))
        return texts

    def place(self, number, text):
        """Where the one message with a text stands in a request."""
        texts = self.texts(number)
        places = [at for at, (_, each) in enumerate(texts) if text in each]
        self.assertEqual(len(places), 1, (text, texts))
        return places[0]

    def assert_round(self, number, turn, prompt):
        """The round's text stands once in a request, right behind its prompt."""
        at = self.place(number, f"This is round {turn}.")
        self.assertEqual(self.texts(number)[at - 1], ("user", prompt))
        self.assertEqual(self.texts(number)[at][0], "user")

    def assert_told_once(self):
        """Nothing was told twice."""
        rounds = [text for text in self.machine.told() if "This is round" in text]
        self.assertEqual(len(rounds), len(set(rounds)), rounds)

    def test_what_is_told_stands_once_in_each_request(self):
        """Two prompts with a tool loop, then a resumed one."""
        self.begin([
            shell("echo one"),
            {"text": "first"},
            shell("echo two", "echo three"),
            {"text": "second"},
            {"text": "third"},
        ])
        for number, prompt in enumerate(["begin", "go on", "and on"], 1):
            self.prompt(prompt)
            self.assertEqual(len(self.machine.requests()), [2, 4, 5][number - 1])
        for number in range(5):
            self.assert_round(number, 1, "begin")
        for number in range(2, 5):
            self.assert_round(number, 2, "go on")
        self.assert_round(4, 3, "and on")
        self.assert_told_once()

    def test_a_changed_file_is_told_behind_all_results(self):
        """The model reads a file, and one of two commands of a batch changes it."""
        self.begin([
            {"calls": [{"name": "read", "input": {"path": "notes.txt"}}]},
            shell("echo changed > notes.txt", "echo two"),
            {"text": "first"},
            {"text": "second"},
        ])
        (self.machine.project / "notes.txt").write_text("as it was\n")
        self.prompt("begin")
        self.prompt("go on")
        for number in (2, 3):
            at = self.place(number, "notes.txt: changed")
            roles = [role for role, _ in self.texts(number)[at - 3 : at + 1]]
            self.assertEqual(roles, ["assistant", "tool", "tool", "user"])

    def test_other_extensions_give_reminders_and_a_mode(self):
        """A text that changes, and one of plan mode."""
        self.begin([{"text": "first"}, {"text": "second"}])
        other = self.machine.home / "other.js"
        other.write_text(OTHER)
        self.extensions = ["--extension", str(other)]
        weather = self.machine.project / "weather.txt"
        weather.write_text("It rains.")
        self.prompt("begin")
        weather.write_text("It is dry.")
        self.prompt("go on")
        self.assertEqual(self.place(0, "It rains."), self.place(1, "It rains."))
        self.assertGreater(self.place(1, "It is dry."), self.place(1, "go on"))
        self.assertIn("<proposed_plan>", self.texts(0)[self.place(0, "It rains.")][1])

    def test_a_refused_request_keeps_its_text_and_a_cancelled_one_too(self):
        """After an error of the provider, or a cancel, the session has the text."""
        self.begin([
            {"status": 400, "text": "refused"},
            {"hang": 20, "text": "too late"},
            {"text": "third"},
        ])
        self.prompt("begin")
        self.prompt("go on", cancelled_after=2)
        self.prompt("and on")
        for turn, prompt in enumerate(["begin", "go on", "and on"], 1):
            self.assert_round(-1, turn, prompt)
        self.assert_told_once()

    def test_a_daemon_that_is_killed_in_between_tells_nothing_twice(self):
        """The model's own tool kills it."""
        self.begin([
            shell("pkill -9 -f $DAEMON"),
            {"text": "first"},
            {"text": "second"},
        ])
        self.prompt("begin")
        self.prompt("go on")
        self.assert_round(2, 1, "begin")
        self.assert_round(2, 2, "go on")
        self.assert_told_once()

    def test_a_daemon_that_hangs_holds_nothing_up(self):
        """Stopped, it lets prompts go out without reminders; what it had to say comes later."""
        self.begin([{"text": "first"}, {"text": "second"}, {"text": "third"}])
        self.prompt("begin")
        found = ["pgrep", "-f", self.machine.daemon_pattern()]
        daemon = int(subprocess.run(found, check=True, capture_output=True).stdout.split()[0])
        os.kill(daemon, signal.SIGSTOP)
        output = self.prompt("go on")
        os.kill(daemon, signal.SIGCONT)
        self.assertIn("second", output)
        self.assertEqual(self.texts(1)[-1], ("user", "go on"))
        self.prompt("and on")
        self.assert_round(2, 1, "begin")
        at = self.place(2, "and on")
        self.assertIn("This is round", self.texts(2)[at + 1][1])
        self.assert_told_once()


if __name__ == "__main__":
    unittest.main()
