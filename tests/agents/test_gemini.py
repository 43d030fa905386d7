"""Gemini CLI: what counts is what stands in the request body."""

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
[[reminders]]
id = "todo"
when = "tasks | length > 0"
body = "Think of your list."
"""
SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "telemetry": {"enabled": False},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}


def call(name, **arguments):
    """A call of a tool."""
    return {"name": name, "input": arguments}


class Gemini(unittest.TestCase):
    """Each test is one conversation."""

    def begin(self, steps):
        """A machine with the hooks installed."""
        self.machine = Machine(steps, CONFIGURATION)
        self.addCleanup(self.machine.close)
        settings = self.machine.home / ".gemini" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps(SETTINGS))
        self.machine.reminderd("hook", "install", "gemini")
        self.begun = False

    def prompt(self, text, **options):
        """One prompt of the session, the first one or a resumed one."""
        resumed = ["--resume", "latest"] if self.begun else []
        self.begun = True
        command = ["gemini", "--yolo", "--skip-trust", "-m", "gemini-2.5-flash", *resumed, "-p", text]
        return self.machine.run(
            *command,
            **options,
            GEMINI_API_KEY="scripted",
            GOOGLE_GEMINI_BASE_URL=f"http://127.0.0.1:{self.machine.port}",
            GEMINI_TELEMETRY_ENABLED="false",
        )

    def texts(self, number):
        """The role and the text of each part of a request that has any, in order."""
        contents = self.machine.requests()[number]["contents"]
        parts = [(content["role"], part) for content in contents for part in content["parts"]]
        return [(role, part["text"]) for role, part in parts if part.get("text")]

    def assert_round(self, number, turn, prompt):
        """The round's text stands once in a request, right behind its prompt."""
        texts = self.texts(number)
        places = [at for at, (_, text) in enumerate(texts) if f"This is round {turn}." in text]
        self.assertEqual(len(places), 1, texts)
        self.assertEqual(texts[places[0]][0], "user")
        self.assertEqual(texts[places[0] - 1], ("user", prompt), texts)

    def count(self, number, words):
        """How often words stand in a request."""
        return json.dumps(self.machine.requests()[number]["contents"]).count(words)

    def assert_told_once(self):
        """Nothing was told twice, and nothing went wrong."""
        rounds = [text for text in self.machine.told() if "This is round" in text]
        self.assertEqual(len(rounds), len(set(rounds)), rounds)
        self.assertEqual(self.machine.troubles(), "")

    def test_what_is_told_stands_once_in_each_request(self):
        """Two prompts with a tool loop, then a resumed one; a file that changed, a list."""
        file = "$PROJECT/notes.txt"
        todos = [{"description": "look", "status": "in_progress"}]
        self.begin([
            {"calls": [call("write_file", file_path=file, content="bee\n"), call("glob", pattern="*")]},
            {"text": "first"},
            {"calls": [call("write_todos", todos=todos)]},
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
            self.assertEqual(self.count(number, "Tests &lt;come&gt; first."), 1)
            # The project lies in a directory that git ignores, so that no difference is shown.
            changed = [text for _, text in self.texts(number) if "notes.txt: changed" in text]
            self.assertEqual(len(changed), 1 if number > 1 else 0)
            self.assertEqual(self.count(number, "Think of your list."), 1 if number > 3 else 0)
        for number in range(2, 5):
            self.assert_round(number, 2, "go on")
        self.assert_round(4, 3, "and on")
        self.assert_told_once()

    def test_what_a_refused_request_took_along_is_told_again(self):
        """The host forgets a prompt that the provider refused, and what stood behind it."""
        self.begin([
            {"text": "first"},
            {"status": 400, "text": "refused"},
            {"text": "third"},
            {"text": "fourth"},
        ])
        for prompt in ["begin", "go on", "and on", "and on and on"]:
            self.prompt(prompt)
        late = [self.count(number, "It grew late.") for number in range(4)]
        self.assertEqual(late, [0, 1, 0, 1])
        for number in range(4):
            self.assertEqual(self.count(number, "Tests &lt;come&gt; first."), 1)
        self.assert_round(3, 1, "begin")
        self.assert_round(3, 3, "and on")
        self.assert_round(3, 4, "and on and on")
        self.assert_told_once()

    def test_a_daemon_that_is_killed_in_between_tells_nothing_twice(self):
        """The model's own tool kills it."""
        self.begin([
            {"calls": [call("run_shell_command", command="pkill -9 -f $DAEMON")]},
            {"text": "first"},
            {"text": "second"},
        ])
        self.prompt("begin")
        self.prompt("go on")
        self.assert_round(2, 1, "begin")
        self.assertEqual(self.count(2, "Tests &lt;come&gt; first."), 1)
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
        self.assertEqual(self.count(2, "Tests &lt;come&gt; first."), 1)
        rounds = [text for text in self.machine.told() if "This is round" in text]
        self.assertEqual(len(rounds), len(set(rounds)), rounds)
        self.assertEqual(self.count(2, rounds[-1]), 1)


if __name__ == "__main__":
    unittest.main()
