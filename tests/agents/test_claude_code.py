"""Claude Code: what counts is what stands in the request body."""

import json
import subprocess
import unittest
import uuid

from machine import HERE, Machine

PLUGIN = HERE.parents[1] / "editors" / "claude-code"

CONFIGURATION = """
[kinds]
task-nudge = { unit = "requests", after = 3, cooldown = 50 }
"""


def call(name, **arguments):
    """A step in which the model calls one tool."""
    return {"calls": [{"name": name, "input": arguments}]}


def shell(command):
    """A step in which the model runs a command."""
    return call("Bash", command=command, description="test")


class ClaudeCode(unittest.TestCase):
    """Each test is one conversation."""

    def begin(self, steps, plugin=False):
        """A machine with the hooks installed, or with the plugin that has them."""
        self.machine = Machine(steps, CONFIGURATION)
        self.addCleanup(self.machine.close)
        self.options = ["--plugin-dir", str(PLUGIN)] if plugin else []
        if not plugin:
            self.machine.reminderd("hook", "install", "claude-code")
        self.session = str(uuid.uuid4())
        self.begun = False

    def prompt(self, text, mode="bypassPermissions", **options):
        """One prompt of the session, the first one or a resumed one."""
        named = ["--resume"] if self.begun else ["--session-id"]
        self.begun = True
        return self.machine.run(
            "claude",
            *("-p", text, *named, self.session, "--permission-mode", mode),
            *("--tools", "TaskCreate,TaskUpdate,Read,Edit,Write,Bash"),
            *("--allowedTools", "Bash,Read,Edit,Write"),
            *self.options,
            **options,
            ANTHROPIC_BASE_URL=f"http://127.0.0.1:{self.machine.port}",
            ANTHROPIC_API_KEY="scripted",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            CLAUDE_CODE_MAX_RETRIES="0",
            DISABLE_AUTOUPDATER="1",
            IS_SANDBOX="1",
        )

    def messages_with(self, text):
        """For each request, the places of the messages that hold a text."""
        held = []
        for request in self.machine.requests():
            messages = [json.dumps(it, ensure_ascii=False) for it in request["messages"]]
            written = json.dumps(text, ensure_ascii=False)[1:-1]
            held.append([at for at, it in enumerate(messages) for _ in range(it.count(written))])
        return held

    def assert_once_from(self, text, first):
        """A text stands once in each request from this one on, always in the same place."""
        held = self.messages_with(text)
        self.assertEqual([len(places) for places in held[:first]], [0] * first, held)
        self.assertEqual([len(places) for places in held[first:]], [1] * len(held[first:]), held)
        self.assertEqual(len({places[0] for places in held[first:]}), 1, held)

    def assert_follows(self, number, text, kind):
        """In a request the text follows what the host has just put in: the prompt, or the results."""
        messages = self.machine.requests()[number]["messages"]
        place = self.messages_with(text)[number][0]
        before = [it for it in messages[: place + 1] if it["role"] == "user"][-1]["content"]
        kinds = {"text"} if isinstance(before, str) else {block["type"] for block in before}
        self.assertIn(kind, kinds, messages[place - 1 : place + 1])
        self.assertFalse([it for it in messages[place + 1 :] if it["role"] == "assistant"])

    def test_what_is_told_stands_once_in_each_request(self):
        """Two prompts with a tool loop, then a resumed one: a nudge, a file, plan mode."""
        self.begin([
            call("TaskCreate", subject="Write the parser", description="d", activeForm="Writing"),
            call("Read", file_path="$PROJECT/a.txt"),
            shell("true"),
            {"text": "first"},
            shell("true"),
            {"text": "second"},
            {"text": "third"},
            {"text": "fourth"},
        ])
        (self.machine.project / "a.txt").write_text("one\n")
        self.prompt("begin")
        (self.machine.project / "a.txt").write_text("one\ntwo\n")
        self.prompt("go on")
        self.prompt("plan it", mode="plan")
        self.prompt("plan on", mode="plan")
        told = self.machine.told()
        self.assertEqual(len(self.machine.requests()), 8)
        first, edited, nudge, plan = (
            next(text for text in told if words in text)
            for words in ("Permission mode", "a.txt", "Write the parser", "A plan is being made")
        )
        self.assert_once_from(first, 0)
        self.assert_once_from(edited, 4)
        self.assert_once_from(nudge, 4)
        self.assert_once_from(plan, 6)
        for number, text in ((0, first), (4, edited), (4, nudge), (6, plan)):
            self.assert_follows(number, text, "text")
        for text in told:
            self.assertEqual(told.count(text), 1, text)
            self.assertLessEqual({len(it) for it in self.messages_with(text)}, {0, 1}, text)
        self.assertEqual(self.machine.troubles(), "")

    def test_the_plugin_tells_what_the_settings_would(self):
        """A nudge with a prompt, and in the session that is resumed after it, once."""
        self.begin(
            [
                call("TaskCreate", subject="Write the parser", description="d", activeForm="Writing"),
                shell("true"),
                shell("true"),
                {"text": "first"},
                {"text": "second"},
                {"text": "third"},
            ],
            plugin=True,
        )
        self.prompt("begin")
        self.prompt("go on")
        self.prompt("and on")
        told = self.machine.told()
        self.assertEqual(len(self.machine.requests()), 6)
        nudge = next(text for text in told if "Write the parser" in text)
        self.assert_once_from(nudge, 4)
        self.assert_follows(4, nudge, "text")
        self.assertEqual(self.machine.troubles(), "")

    def test_a_refused_request_keeps_its_text_and_a_cancelled_one_too(self):
        """After an error of the provider, or a cancel, the host's history has the text."""
        self.begin([
            {"status": 500, "text": "overloaded"},
            {"hang": 20, "text": "too late"},
            {"text": "third"},
        ])
        self.prompt("begin")
        self.prompt("go on", mode="plan", cancelled_after=2)
        self.prompt("and on", mode="plan")
        told = self.machine.told()
        for text in told:
            # Each of the two that did not come to their end may be told of, in the same words.
            last = self.messages_with(text)[-1]
            self.assertEqual(len(last), told.count(text), (text, self.messages_with(text)))
        for words in ("Permission mode: full-auto", "A plan is being made"):
            self.assertEqual(len([text for text in told if words in text]), 1, told)
        self.assertEqual(self.machine.troubles(), "")

    def test_a_daemon_that_is_killed_in_between_tells_nothing_twice(self):
        """The model's own tool kills it, between a text that was given and its proof."""
        self.begin([
            shell("pkill -9 -f $DAEMON"),
            shell("true"),
            {"text": "first"},
            {"text": "second"},
        ])
        self.prompt("begin", mode="plan")
        self.prompt("go on")
        told = self.machine.told()
        self.assertEqual(len(self.machine.requests()), 4)
        plan = next(text for text in told if "A plan is being made" in text)
        self.assert_once_from(plan, 0)
        for text in told:
            self.assertEqual(told.count(text), 1, told)

    def test_a_daemon_that_hangs_holds_nobody_up_and_loses_nothing(self):
        """The hook gives up within its time; what it would have said comes with a later request."""
        self.begin([
            {"text": "first"},
            {"text": "second"},
            {"text": "third"},
        ])
        self.prompt("begin")
        (self.machine.project / "a.txt").write_text("one\n")
        subprocess.run(["pkill", "-STOP", "-f", self.machine.daemon_pattern()], check=True)
        self.prompt("go on", mode="plan")
        subprocess.run(["pkill", "-CONT", "-f", self.machine.daemon_pattern()], check=True)
        self.prompt("and on", mode="plan")
        told = self.machine.told()
        plan = next(text for text in told if "A plan is being made" in text)
        self.assert_once_from(plan, 2)


if __name__ == "__main__":
    unittest.main()
