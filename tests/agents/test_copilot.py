"""Copilot CLI: what counts is what stands in the request body."""

import json
import signal
import subprocess
import unittest

from machine import Machine

CONFIGURATION = """
[[reminders]]
id = "round"
body = "This is round {{ turn }}."
policy = "always"
[[reminders]]
id = "rule"
body = "Tests <come> first."
[[reminders]]
id = "late"
when = "turn >= 2"
body = "It grew late."
"""

def call(name, **arguments):
    """A call of a tool."""
    return {"name": name, "input": arguments}


class Copilot(unittest.TestCase):
    """Each test is one conversation."""

    def begin(self, steps):
        """A machine with the hooks installed."""
        self.machine = Machine(steps, CONFIGURATION)
        self.addCleanup(self.machine.close)
        self.machine.reminderd("hook", "install", "copilot")
        self.begun = False

    def prompt(self, text, **options):
        """One prompt of the session, the first one or a resumed one."""
        resumed = ["--continue"] if self.begun else []
        self.begun = True
        return self.machine.run(
            "copilot",
            *resumed,
            "--allow-all-tools",
            "-p",
            text,
            **options,
            COPILOT_OFFLINE="true",
            COPILOT_PROVIDER_BASE_URL=f"http://127.0.0.1:{self.machine.port}/v1",
            COPILOT_PROVIDER_API_KEY="scripted",
            COPILOT_MODEL="gpt-4.1",
            COPILOT_ALLOW_ALL="true",
        )

    def texts(self, number):
        """The role and the text of each message of a request, in order."""
        messages = self.machine.requests()[number]["messages"]
        return [(message["role"], json.dumps(message.get("content"))) for message in messages]

    def assert_round(self, number, turn, prompt):
        """The round's text stands once in a request, in its prompt's own message, behind it."""
        texts = [text for text in self.texts(number) if f"This is round {turn}." in text[1]]
        self.assertEqual(len(texts), 1, texts)
        role, text = texts[0]
        self.assertEqual(role, "user")
        self.assertEqual(text.count("This is round"), 1)
        self.assertLess(text.index(prompt), text.index("This is round"))

    def count(self, number, words):
        """How often words stand in a request."""
        return json.dumps(self.machine.requests()[number]["messages"]).count(words)

    def assert_told_once(self):
        """Nothing was told twice, and nothing went wrong."""
        rounds = [text for text in self.machine.told() if "This is round" in text]
        self.assertEqual(len(rounds), len(set(rounds)), rounds)
        self.assertEqual(self.machine.troubles(), "")

    def test_what_is_told_stands_once_in_each_request(self):
        """Two prompts with a tool loop, then a resumed one, and a file that changed."""
        file = "$PROJECT/notes.txt"
        self.begin([
            {"calls": [call("create", path=file, file_text="bee\n"), call("glob", pattern="*")]},
            {"text": "first"},
            {"calls": [call("view", path=file)]},
            {"text": "second"},
            {"text": "third"},
        ])
        self.prompt("begin")
        (self.machine.project / "notes.txt").write_text("bee\nwasp\n")
        self.prompt("go on")
        self.prompt("and on")
        self.assertEqual(len(self.machine.requests()), 5)
        for number in range(5):
            self.assert_round(number, 1, "begin")
            self.assertEqual(self.count(number, "Tests <come> first."), 1)
            # The project lies in a directory that git ignores, so that no difference is shown.
            changed = [text for _, text in self.texts(number) if "notes.txt: changed" in text]
            self.assertEqual(len(changed), 1 if number > 1 else 0)
        for number in range(2, 5):
            self.assert_round(number, 2, "go on")
        self.assert_round(4, 3, "and on")
        self.assert_told_once()

    def test_a_refused_request_keeps_its_text_and_a_cancelled_one_too(self):
        """After an error of the provider, or a cancel, the host's history has the text."""
        self.begin([
            {"text": "first"},
            {"status": 400, "text": "refused"},
            {"hang": 20, "text": "too late"},
            {"text": "fourth"},
        ])
        self.prompt("begin")
        self.prompt("go on")
        self.prompt("on", cancelled_after=3)
        self.prompt("and on")
        last = len(self.machine.requests()) - 1
        for turn, prompt in enumerate(["begin", "go on", "on", "and on"], 1):
            self.assert_round(last, turn, prompt)
        self.assertEqual(self.count(last, "It grew late."), 1)
        self.assert_told_once()

    def test_a_daemon_that_is_killed_in_between_tells_nothing_twice(self):
        """The model's own tool kills it."""
        self.begin([
            {"calls": [call("bash", command="pkill -9 -f $DAEMON", description="end it")]},
            {"text": "first"},
            {"text": "second"},
        ])
        self.prompt("begin")
        self.prompt("go on")
        self.assert_round(2, 1, "begin")
        self.assertEqual(self.count(2, "Tests <come> first."), 1)
        self.assertEqual(self.count(2, "This is round 2."), 1)
        self.assert_told_once()

    def test_a_daemon_that_hangs_does_not_keep_the_agent(self):
        """The agent goes on without; what was not told is told when the daemon is back."""
        self.begin([{"text": "first"}, {"text": "second"}, {"text": "third"}])
        self.prompt("begin")
        daemons = ["-f", self.machine.daemon_pattern()]
        subprocess.run(["pkill", f"-{signal.SIGSTOP.name}", *daemons], check=True)
        self.prompt("go on")
        self.assertEqual(self.count(1, "This is round 2."), 0)
        subprocess.run(["pkill", f"-{signal.SIGCONT.name}", *daemons], check=True)
        self.prompt("and on")
        self.assertEqual(self.count(2, "Tests <come> first."), 1)
        rounds = [text for text in self.machine.told() if "This is round" in text]
        self.assertEqual(len(rounds), len(set(rounds)), rounds)
        self.assertEqual(self.count(2, rounds[-1]), 1)


if __name__ == "__main__":
    unittest.main()
