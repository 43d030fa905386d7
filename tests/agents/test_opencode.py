"""OpenCode: what counts is what stands in the request body."""

import json
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
[[reminders]]
id = "todo"
when = "tasks | length > 0"
body = "Think of your list."
"""
PLUGIN = HERE.parents[1] / "editors" / "opencode" / "dist" / "index.js"


def call(name, **arguments):
    """A call of a tool."""
    return {"name": name, "input": arguments}


def shell(command):
    """A call that runs a command."""
    return call("bash", command=command, description="work")


class OpenCode(unittest.TestCase):
    """Each test is one conversation."""

    def begin(self, steps):
        """A machine with the plugin. The first prompt's title is asked for beside it."""
        self.machine = machine = Machine(steps, CONFIGURATION)
        self.addCleanup(machine.close)
        for name in ("OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE"):
            machine.environment[name] = "1"
        url = f"http://127.0.0.1:{machine.port}/v1"
        model = {"name": "scripted", "tool_call": True}
        settings = {
            "$schema": "https://opencode.ai/config.json",
            "autoupdate": False,
            "share": "disabled",
            "plugin": [PLUGIN.as_uri()],
            "permission": {"bash": "allow", "edit": "allow"},
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "agent": {"title": {"disable": True}},
            "provider": {
                "scripted": {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": "scripted",
                    "options": {"baseURL": url, "apiKey": "scripted"},
                    "models": {"scripted": model},
                }
            },
        }
        (machine.project / "opencode.json").write_text(json.dumps(settings))
        self.begun = False

    def prompt(self, text, **options):
        """One prompt of the session, the first one or a resumed one."""
        resumed = ["--continue"] if self.begun else []
        self.begun = True
        return self.machine.run("opencode", "run", *resumed, text, **options)

    def requests(self):
        """The messages of each request of the conversation itself."""
        bodies = [body["messages"] for body in self.machine.requests()]
        return [messages for messages in bodies if "title" not in json.dumps(messages[0])[:400]]

    def texts(self, messages):
        """The role and the text of each part of a request's messages, in order."""
        found = []
        for message in messages:
            content = message.get("content")
            parts = content if isinstance(content, list) else [{"text": content}]
            found += [(message["role"], part.get("text") or "") for part in parts]
        return found

    def places(self, number, words):
        """Where words stand in a request, as the numbers of parts."""
        texts = self.texts(self.requests()[number])
        return [at for at, (_, text) in enumerate(texts) if words in text]

    def assert_round(self, number, turn, prompt):
        """The round's text stands once in a request, right behind its prompt."""
        places = self.places(number, f"This is round {turn}.")
        texts = self.texts(self.requests()[number])
        self.assertEqual(len(places), 1, texts)
        self.assertIn(prompt, "".join(text for _, text in texts[places[0] - 1 : places[0] + 1]))

    def assert_told_once(self):
        """Nothing was told twice."""
        rounds = [text for text in self.machine.told() if "This is round" in text]
        self.assertEqual(len(rounds), len(set(rounds)), rounds)

    def test_what_is_told_stands_once_in_each_request(self):
        """Two prompts with tool loops, then a resumed one; a file that changed, a list."""
        file = "$PROJECT/notes.txt"
        todos = [{"content": "look", "status": "in_progress", "priority": "high", "id": "1"}]
        self.begin([
            {"calls": [call("write", filePath=file, content="bee\n")]},
            {"text": "first"},
            {"calls": [shell("echo wasp >> notes.txt"), shell("echo two")]},
            {"text": "second"},
            {"calls": [call("todowrite", todos=todos)]},
            {"text": "third"},
        ])
        for prompt in ["begin", "proceed", "finish"]:
            self.prompt(prompt)
        self.assertEqual(len(self.requests()), 6)
        for number in range(6):
            self.assert_round(number, 1, "begin")
            changed = self.places(number, "notes.txt: changed")
            self.assertEqual(len(changed), 1 if number > 2 else 0)
            self.assertEqual(len(self.places(number, "Think of your list.")), int(number > 4))
        # Behind both results of its batch, and before the answer.
        texts = self.texts(self.requests()[3])
        results = [at for at, (role, _) in enumerate(texts) if role == "tool"]
        self.assertGreater(self.places(3, "notes.txt: changed")[0], max(results))
        self.assert_told_once()

    def test_a_refused_request_keeps_its_text(self):
        """After an error of the provider the session has the text."""
        self.begin([{"text": "first"}, {"status": 400, "text": "refused"}, {"text": "third"}])
        for prompt in ["begin", "proceed", "finish"]:
            self.prompt(prompt)
        for turn, prompt in enumerate(["begin", "proceed", "finish"], 1):
            self.assert_round(-1, turn, prompt)
        self.assert_told_once()

    def test_a_daemon_that_is_killed_in_between_tells_nothing_twice(self):
        """The model's own tool kills it."""
        self.begin([
            {"calls": [shell("pkill -9 -f $DAEMON")]},
            {"text": "first"},
            {"text": "second"},
        ])
        self.prompt("begin")
        self.prompt("proceed")
        self.assert_round(-1, 1, "begin")
        # The turn that the new daemon found open counts for itself.
        rounds = [text for text in self.machine.told() if "This is round" in text]
        self.assertGreaterEqual(len(rounds), 2)
        for text in rounds:
            self.assertEqual(len(self.places(-1, text)), 1, text)
        self.assert_told_once()

    def test_a_daemon_that_hangs_does_not_keep_the_agent(self):
        """The agent goes on without; what was not told is told when the daemon is back."""
        self.begin([{"text": "first"}, {"text": "second"}, {"text": "third"}])
        self.prompt("begin")
        daemons = ["-f", self.machine.daemon_pattern()]
        subprocess.run(["pkill", f"-{signal.SIGSTOP.name}", *daemons], check=True)
        self.prompt("proceed")
        self.assertEqual(self.places(-1, "This is round 2."), [])
        subprocess.run(["pkill", f"-{signal.SIGCONT.name}", *daemons], check=True)
        self.prompt("finish")
        self.assertEqual(len(self.places(-1, "This is round 1.")), 1)
        rounds = [text for text in self.machine.told() if "This is round" in text]
        self.assertEqual(len(rounds), len(set(rounds)), rounds)


if __name__ == "__main__":
    unittest.main()
