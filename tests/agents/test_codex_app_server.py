"""Codex's app server, behind `reminderd-codex`: what counts is what stands in the request body."""

import json
import queue
import subprocess
import threading
import unittest

import test_codex
from machine import AGENTS, HERE, PATIENCE, REMINDERD, Machine

RELAY = HERE.parents[1] / "editors" / "codex" / "dist" / "main.js"
CONFIGURATION = """
[[reminders]]
id = "round"
body = "This is round {{ turn }}."
policy = "always"
[[reminders]]
id = "nudge"
tool = { name = "Bash", input = "echo done" }
body = "Nothing was tested in round {{ turn }}."
policy = "always"
[[reminders]]
id = "rule"
body = "Tests come first."
"""


def shells(*commands):
    """A step in which the model runs commands, at the same time."""
    return {"calls": [{"name": "exec_command", "input": {"cmd": it}} for it in commands]}


class AppServer:
    """A client of the app server, through the relay."""

    def __init__(self, machine):
        self.machine = machine
        self.process = subprocess.Popen(
            ["node", RELAY, AGENTS / "codex", "app-server"],
            env={
                **machine.environment,
                "SCRIPTED_KEY": "scripted",
                "REMINDERD": REMINDERD,
                "REMINDERD_DEADLINE_MS": "5000",
            },
            cwd=machine.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.messages = queue.Queue()
        self.seen = []
        self.count = 0
        threading.Thread(target=self.listen, daemon=True).start()
        self.ask("initialize", clientInfo={"name": "test", "version": "1"},
                 capabilities={"experimentalApi": True})
        self.send({"method": "initialized"})

    def listen(self):
        for line in self.process.stdout:
            self.messages.put(json.loads(line))

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def until(self, holds):
        """The next message for which a condition holds."""
        while True:
            message = self.messages.get(timeout=PATIENCE)
            self.seen.append(message)
            if holds(message):
                return message

    def ask(self, method, **params):
        """A request's result."""
        self.count += 1
        asked = self.count
        self.send({"id": asked, "method": method, "params": params})
        answer = self.until(lambda it: it.get("id") == asked and "method" not in it)
        if "result" not in answer:
            raise AssertionError(answer)
        return answer["result"]

    def start(self):
        """A new thread."""
        started = self.ask("thread/start", cwd=str(self.machine.project),
                           approvalPolicy="never", sandbox="danger-full-access")
        return started["thread"]["id"]

    def begin(self, thread, text, **more):
        """Begins a turn, and returns its id."""
        part = {"type": "text", "text": text}
        return self.ask("turn/start", threadId=thread, input=[part], **more)["turn"]["id"]

    def ended(self):
        """Waits for the end of the turn, and returns how it ended."""
        ended = self.until(lambda it: it.get("method") == "turn/completed")
        return ended["params"]["turn"]["status"]

    def prompt(self, thread, text, **more):
        """A whole turn."""
        self.begin(thread, text, **more)
        return self.ended()

    def close(self):
        """Ends as a client does: by the end of its input."""
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


class CodexAppServer(unittest.TestCase):
    """Each test is one conversation."""

    def begin(self, steps, configuration=CONFIGURATION):
        """A machine, and an app server on it."""
        self.machine = Machine(steps, configuration)
        self.addCleanup(self.machine.close)
        settings = self.machine.home / ".codex" / "config.toml"
        settings.parent.mkdir()
        provider = test_codex.PROVIDER
        settings.write_text(
            provider.format(port=self.machine.port, project=self.machine.project)
        )
        return self.connect()

    def connect(self):
        """An app server of its own process."""
        server = AppServer(self.machine)
        self.addCleanup(server.close)
        return server

    texts = test_codex.Codex.texts

    def places(self, number, text):
        """Where a text stands in a request."""
        return [at for at, (_, it) in enumerate(self.texts(number)) if text in it]

    def assert_once_from(self, text, first):
        """A text stands once in each request from this one on, at the same place, as the user's."""
        held = [self.places(number, text) for number in range(len(self.machine.requests()))]
        self.assertEqual([len(it) for it in held[:first]], [0] * first, (text, held))
        self.assertEqual([len(it) for it in held[first:]], [1] * len(held[first:]), (text, held))
        self.assertEqual(len({it[0] for it in held[first:]}), 1, (text, held))
        self.assertEqual(self.texts(first)[held[first][0]][0], "user")

    def assert_follows(self, number, text, kind):
        """In a request the text is the last item, right behind one of this kind."""
        texts = self.texts(number)
        self.assertIn(text, texts[-1][1])
        self.assertEqual(texts[-2][0], kind, texts)

    def assert_told_once(self):
        """Nothing was told twice."""
        told = self.machine.told()
        self.assertEqual(len(told), len(set(told)), told)

    def test_what_is_told_stands_once_in_each_request(self):
        """Two prompts with tools side by side, then a resumed thread: a nudge, a file, plan mode."""
        server = self.begin([
            shells("cat a.txt", "sleep 1; echo done"),
            shells("sleep 1", "sleep 1"),
            {"text": "first"},
            shells("sleep 1"),
            {"text": "second"},
            {"text": "third"},
            {"text": "fourth"},
        ])
        (self.machine.project / "a.txt").write_text("one\n")
        thread = server.start()
        self.assertEqual(server.prompt(thread, "begin"), "completed")
        server.prompt(thread, "go on")
        server.close()
        (self.machine.project / "a.txt").write_text("one\ntwo\n")
        server = self.connect()
        server.ask("thread/resume", threadId=thread)
        planning = {"mode": "plan", "settings": {"model": "gpt-5.5"}}
        server.prompt(thread, "plan it", collaborationMode=planning)
        server.prompt(thread, "plan on")
        told = self.machine.told()
        self.assertEqual(len(self.machine.requests()), 7)
        for text, first in (
            ("This is round 1.", 0),
            ("Nothing was tested in round 1.", 2),
            ("This is round 2.", 3),
            ("- a.txt: changed from outside", 5),
            ("A plan is being made", 5),
            ("This is round 3.", 5),
            ("This is round 4.", 6),
            ("Tests come first.", 0),
        ):
            self.assert_once_from(text, first)
        self.assert_follows(2, "Nothing was tested in round 1.", "function_call_output")
        self.assert_follows(3, "This is round 2.", "user")
        self.assertEqual(self.texts(3)[-2], ("user", "go on"))
        self.assertEqual(len(told), len(set(told)), told)

    def test_a_refused_prompt_keeps_its_text_and_an_interrupted_one_too(self):
        """Whatever the provider answers: the server's history has the text."""
        server = self.begin([
            {"status": 500, "text": "overloaded"},
            {"hang": 20, "text": "too late"},
            {"text": "third"},
        ])
        thread = server.start()
        self.assertEqual(server.prompt(thread, "begin"), "failed")
        turn = server.begin(thread, "go on")
        self.machine.wait_for_requests(2)
        server.ask("turn/interrupt", threadId=thread, turnId=turn)
        self.assertEqual(server.ended(), "interrupted")
        server.prompt(thread, "and on")
        for number in range(3):
            self.assert_once_from(f"This is round {number + 1}.", number)
        self.assert_once_from("Tests come first.", 0)
        self.assert_told_once()

    def test_an_interrupt_before_a_steered_text_arrives_loses_nothing(self):
        """The text that waited for the end of the tools comes with the next prompt, once."""
        often = "[[reminders]]\nid = 'often'\nbody = 'Commit often.'\n"
        often += "policy = { every = { requests = 2 } }\n"
        server = self.begin([shells("true"), shells("sleep 1", "sleep 30")], often)
        thread = server.start()
        turn = server.begin(thread, "begin")
        # By the end of the first of the tools the text was steered for long.
        server.until(lambda it: "sleep 1" in json.dumps(it) and it["method"] == "item/completed")
        server.ask("turn/interrupt", threadId=thread, turnId=turn)
        server.ended()
        server.prompt(thread, "go on")
        server.prompt(thread, "and on")
        held = [len(self.places(number, "Commit often.")) for number in range(4)]
        self.assertEqual(held, [1, 1, 2, 2])

    def test_a_daemon_that_is_killed_in_between_tells_nothing_twice(self):
        """The model's own tool kills it, between a text that was steered and its proof."""
        server = self.begin([
            shells("sleep 1; echo done"),
            shells("sleep 1; pkill -9 -f $DAEMON"),
            {"text": "first"},
            {"text": "second"},
            {"text": "third"},
        ])
        thread = server.start()
        for prompt in ("begin", "go on", "and on"):
            self.assertEqual(server.prompt(thread, prompt), "completed")
        self.assert_once_from("Nothing was tested in round 1.", 2)
        self.assert_once_from("This is round 1.", 0)
        self.assert_once_from("Tests come first.", 0)
        self.assertLessEqual(len(self.places(4, "This is round 3.")), 1)
        self.assert_told_once()

    def test_a_daemon_that_hangs_holds_nobody_up_and_loses_nothing(self):
        """Prompts go out without reminders; what was not told comes with a later one."""
        server = self.begin([{"text": "first"}, shells("true"), {"text": "second"}])
        thread = server.start()
        server.prompt(thread, "begin")
        daemon = self.machine.daemon_pattern()
        subprocess.run(["pkill", "-STOP", "-f", daemon], check=True)
        planning = {"mode": "plan", "settings": {"model": "gpt-5.5"}}
        self.assertEqual(server.prompt(thread, "go on", collaborationMode=planning), "completed")
        self.assertEqual(self.texts(2)[-3][1], "go on", self.texts(2))
        subprocess.run(["pkill", "-CONT", "-f", daemon], check=True)
        server.prompt(thread, "and on")
        self.assert_once_from("A plan is being made", 3)
        self.assert_once_from("Tests come first.", 0)
        self.assert_told_once()

    def test_a_fork_has_what_was_told_and_a_compaction_has_not(self):
        """What a history lost is told again, what it took along is not."""
        server = self.begin([{"text": text} for text in ("first", "second", "summary", "third")])
        thread = server.start()
        server.prompt(thread, "begin")
        fork = server.ask("thread/fork", threadId=thread)["thread"]["id"]
        server.prompt(fork, "go on")
        self.assertEqual(len(self.places(1, "Tests come first.")), 1)
        server.ask("thread/compact/start", threadId=fork)
        server.ended()
        server.prompt(fork, "and on")
        self.assertEqual(len(self.places(3, "Tests come first.")), 1, self.texts(3))


if __name__ == "__main__":
    unittest.main()
