"""Codex CLI: what counts is what stands in the request body."""

import json
import unittest

from machine import Machine

CONFIGURATION = """
[[reminders]]
id = "round"
body = "This is round {{ turn }}."
policy = "always"
[[reminders]]
id = "rule"
body = "Tests come first."
[[reminders]]
id = "agents"
scopes = ["agents"]
body = "Commit nothing."
"""
PROVIDER = """
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[otel]
exporter = "none"
[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{port}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
[projects."{project}"]
trust_level = "trusted"
"""


def shell(command):
    """A step in which the model runs a command."""
    return {"calls": [{"name": "exec_command", "input": {"cmd": command}}]}


class Codex(unittest.TestCase):
    """Each test is one conversation."""

    def begin(self, steps, settings_before=""):
        """A machine with the hooks installed."""
        self.machine = Machine(steps, CONFIGURATION)
        self.addCleanup(self.machine.close)
        self.machine.reminderd("hook", "install", "codex")
        settings = self.machine.home / ".codex" / "config.toml"
        provider = PROVIDER.format(port=self.machine.port, project=self.machine.project)
        settings.write_text(settings_before + provider)
        self.begun = False

    def prompt(self, text, **options):
        """One prompt of the session, the first one or a resumed one."""
        resumed = ["resume", "--last"] if self.begun else []
        self.begun = True
        trusted = "--dangerously-bypass-hook-trust"
        sandbox = "--dangerously-bypass-approvals-and-sandbox"
        command = ["codex", "exec", *resumed, trusted, sandbox, "--skip-git-repo-check", text]
        return self.machine.run(*command, **options, SCRIPTED_KEY="scripted")

    def texts(self, number):
        """The role and the text of each message of a request, in order."""
        items = self.machine.requests()[number]["input"]
        return [
            (item["role"], part["text"]) if "role" in item else (item["type"], json.dumps(item))
            for item in items
            for part in (item["content"] if isinstance(item.get("content"), list) else [{}])
            if "role" not in item or "text" in part
        ]

    def assert_round(self, number, turn, prompt):
        """The round's text stands once in a request, right behind its prompt."""
        texts = self.texts(number)
        places = [at for at, (_, text) in enumerate(texts) if f"This is round {turn}." in text]
        self.assertEqual(len(places), 1, texts)
        self.assertEqual(texts[places[0] - 1], ("user", prompt), texts)

    def assert_told_once(self):
        """Nothing was told twice, and nothing went wrong."""
        rounds = [text for text in self.machine.told() if "This is round" in text]
        self.assertEqual(len(rounds), len(set(rounds)), rounds)
        self.assertEqual(self.machine.troubles(), "")

    def test_what_is_told_stands_once_in_each_request(self):
        """Two prompts with a tool loop, then a resumed one."""
        self.begin([
            shell("echo one"),
            {"text": "first"},
            shell("echo two"),
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

    def test_a_refused_request_keeps_its_text_and_a_cancelled_one_too(self):
        """After an error of the provider, or a cancel, the host's history has the text."""
        self.begin([
            {"status": 500, "text": "overloaded"},
            {"hang": 20, "text": "too late"},
            {"text": "third"},
        ])
        self.prompt("begin")
        self.prompt("go on", cancelled_after=2)
        self.prompt("and on")
        for turn, prompt in enumerate(["begin", "go on", "and on"], 1):
            self.assert_round(2, turn, prompt)
        self.assert_told_once()

    def test_a_daemon_that_is_killed_in_between_tells_nothing_twice(self):
        """The model's own tool kills it, between a text that was given and its proof."""
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

    def places(self, number, words):
        """Where words stand in a request."""
        return [at for at, (_, text) in enumerate(self.texts(number)) if words in text]

    def test_what_a_compaction_drops_is_told_again(self):
        """In a turn that goes on behind the summary, else with the next prompt."""
        in_a_turn, between = [shell("echo one")], [{"text": "first"}]
        for steps, prompts in ((in_a_turn, ["begin"]), (between, ["begin", "go on"])):
            with self.subTest(steps=steps):
                # What the first request used is more than that.
                limit = "model_auto_compact_token_limit = 10\n"
                self.begin([*steps, {"text": "summary"}, {"text": "last"}], limit)
                for prompt in prompts:
                    self.prompt(prompt)
                self.assertEqual(len(self.machine.requests()), 3)
                held = [self.places(number, "Tests come first.") for number in range(3)]
                self.assertEqual([len(it) for it in held], [1, 1, 1], held)
                self.assertEqual(held[2], [len(self.texts(2)) - 1])
                self.assertEqual(self.texts(2)[-1][0], "developer")
                self.assertEqual(self.machine.troubles(), "")

    def test_agents_are_told_for_themselves(self):
        """An agent's prompt is no prompt of its parent's, whose turn goes on."""
        spawn = {"name": "spawn_agent", "namespace": "multi_agent_v1"}
        # Both run a command, so that neither is over before the other has begun.
        self.begin([
            {"calls": [{**spawn, "input": {"message": "look around"}}]},
            shell("sleep 1"),
            shell("sleep 1"),
        ])
        self.prompt("begin")
        self.prompt("go on")
        numbers = range(len(self.machine.requests()))
        agents = [at for at in numbers if not self.places(at, "begin")]
        self.assertTrue(agents)
        for number in agents:
            texts, places = self.texts(number), self.places(number, "Commit nothing.")
            self.assertEqual(len(places), 1, texts)
            self.assertEqual(texts[places[0] - 1], ("user", "look around"))
        for number in set(numbers) - set(agents):
            self.assertEqual(self.places(number, "Commit nothing."), [])
            self.assertEqual(len(self.places(number, "Tests come first.")), 1)
        self.assert_round(numbers[-1], 1, "begin")
        self.assert_round(numbers[-1], 2, "go on")
        self.assertEqual(self.machine.troubles(), "")


if __name__ == "__main__":
    unittest.main()
