"""The plain client against the real daemon, and against daemons that are broken."""

import contextlib
import os
import signal
import threading
import unittest

import reminderd
from support import (
    BROKEN,
    PATIENCE_SECONDS,
    REMINDERD,
    LateDaemon,
    private_env,
    stand_in,
    until,
)


class ClientTest(unittest.TestCase):
    def client(self, command=(REMINDERD,), **options):
        self.notices, self.problems = [], []
        client = reminderd.Client(
            command,
            **{
                "env": private_env(),
                "deadline": PATIENCE_SECONDS,
                "on_notice": self.notices.append,
                "on_problem": self.problems.append,
                **options,
            },
        )
        self.addCleanup(client.close)
        return client

    def crash(self, client, session):
        """Kills the daemon, and waits until another one has opened the session."""
        self.assertTrue(session.open)
        before = client.health()
        os.kill(before.pid, signal.SIGKILL)
        until(lambda: not session.open or client.health().starts > before.starts)
        until(lambda: session.open)


class Conversations(ClientTest):
    def test_a_body_is_told_once_its_wait_is_committed_and_again_when_released(self):
        session = self.client().session("s")
        with session.turn("t1"):
            session.notify("reminder/enqueue", body="the build is green")
            first = session.wait(seam="prompt")
            self.assertEqual(first.row, "◇ 1 system reminder (pending events)")
            session.release(first, "cancelled")

            second = session.wait()
            self.assertIn("the build is green", second.messages[0]["content"])
            self.assertEqual(session.commit(second)["record"], second.record)
            self.assertTrue(session.commit(second)["already"])
            self.assertEqual(session.wait().messages, [])
        self.assertEqual((self.notices, self.problems), ([], []))

    def test_a_block_commits_at_its_end_and_releases_on_an_exception(self):
        session = self.client().session("s", records=[])
        with contextlib.suppress(ZeroDivisionError), session.turn():
            session.notify("reminder/enqueue", body="still to be told")
            with session.reminders():
                raise ZeroDivisionError
        with session.turn(), session.reminders() as delivery:
            self.assertEqual([entry["type"] for entry in delivery.entries], ["pending-events"])
        self.assertEqual(session.records, [delivery.record])

    def test_what_a_commit_leaves_out_is_offered_again(self):
        session = self.client().session("s")
        session.begin_turn()
        for name in ("one", "two"):
            session.notify("reminder/stage", type=name, body=f"text of {name}")
        delivery = session.wait()
        session.commit(delivery, entries=[delivery.entries[0]["id"]])
        self.assertEqual([entry["type"] for entry in session.wait().entries], ["two"])

    def test_bodies_arrive_as_they_were_sent(self):
        session = self.client().session("s é")
        session.begin_turn()
        for body in ("naïve — 数据 — 🦀👩‍👩‍👧 — عربى — \u2028", "x€" * (1 << 18)):
            session.notify("reminder/stage", type="x", body=body)
            with session.reminders() as delivery:
                self.assertEqual(delivery.entries[0]["body"], body)

    def test_a_record_gives_the_messages_content_again(self):
        reminders = [{"id": name, "body": f"text of {name} … ✓"} for name in "ab"]
        for form, options in (
            ("blocks", {}),
            ("block", {"profile": "prompt"}),
            ("plain", {"host": {"render": "plain"}}),
        ):
            with self.subTest(form):
                session = self.client().session("s", reminders=reminders, **options)
                session.begin_turn(prompt="a prompt")
                delivery = session.wait()
                self.assertEqual(delivery.record["form"], form)
                content = reminderd.content_of(delivery.record)
                self.assertEqual(content, delivery.message["content"])

    def test_an_agent_has_a_turn_and_reminders_of_its_own(self):
        session = self.client().session("s")
        session.begin_turn()
        agent = session.agent("/reviewer", maxRequests=1)
        agent.begin_turn()
        self.assertEqual([entry["type"] for entry in agent.wait().entries], ["max-requests-limit"])
        self.assertEqual(session.wait().entries, [])
        agent.settle()
        with self.assertRaises(reminderd.Refused) as caught:
            agent.request("reminder/wait")
        self.assertEqual((caught.exception.code, caught.exception.kind), (-33003, "unknownAgent"))

    def test_an_event_that_is_refused_is_a_problem_for_the_log(self):
        session = self.client().session("s")
        session.notify("reminder/observe", key="k", type="x", body="without a turn")
        session.begin_turn("t1")
        session.begin_turn("t1")
        self.assertIsNotNone(session.wait().token)
        until(lambda: len(self.problems) == 2)
        methods = {problem["method"] for problem in self.problems}
        self.assertEqual(methods, {"reminder/observe", "turn/begin"})
        self.assertEqual(self.notices, [])

    def test_generators_speak_are_silent_or_fail(self):
        session = self.client().session("s")
        asked = []

        def fails(params):
            raise RuntimeError("broken")

        session.generate("speaks", lambda params: asked.append(params) or "body ✓")
        session.generate("silent", lambda params: None)
        session.generate("fails", fails)
        session.begin_turn()
        # A generator has 250 ms, which a busy machine may miss.
        entries = until(lambda: session.wait().entries)
        self.assertEqual([(e["type"], e["body"]) for e in entries], [("speaks", "body ✓")])
        self.assertEqual(asked[0]["session"], "s")

    def test_records_follow_what_becomes_of_history(self):
        session = self.client().session("s", records=[])
        agent = session.agent("/a")

        def tell(scope, turn):
            with scope.turn(turn):
                scope.notify("reminder/stage", type="x", body=turn)
                with scope.reminders() as delivery:
                    return delivery.record["id"]

        a, b, c = (tell(session, turn) for turn in ("t1", "t2", "t3"))
        other = tell(agent, "t1")
        for scope, method, params, left in (
            (session, "rewound", {"through": b}, [a, b, other]),
            (session, "compacted", {"retained": [b]}, [b, other]),
            (session, "compacted", {"retained": "all"}, [b, other]),
            (session, "reported", {"records": [b, c]}, [b, other]),
            (session, "cleared", {}, [other]),
            (agent, "rewound", {"through": None}, []),
        ):
            scope.notify(f"history/{method}", **params)
            self.assertEqual([record["id"] for record in session.records], left, method)

    def test_two_clients_share_a_session_and_either_commits(self):
        command = [REMINDERD, "connect", "--ephemeral", "--idle", "0"]
        env = private_env()
        host, other = self.client(command, env=env), self.client(command, env=env)
        session = host.session("s")
        session.begin_turn()
        session.opened()
        seen = other.session("s")
        self.assertEqual(seen.opened()["state"], "live")
        seen.request("reminder/enqueue", body="from the script")
        delivery = session.wait()
        self.assertIn("from the script", delivery.messages[0]["content"])
        self.assertFalse(seen.commit(delivery)["already"])
        self.assertTrue(session.commit(delivery)["already"])


class Lives(ClientTest):
    def test_requests_go_out_and_the_person_is_told_once_when_the_daemon_is_broken(self):
        for what, command, trouble in BROKEN:
            with self.subTest(what):
                client = self.client(command, deadline=0.05)
                session = client.session("s", records=[])
                for _ in range(3):
                    with session.turn(), session.reminders() as delivery:
                        session.notify("task/put", task={"id": "1", "subject": "x"})
                        self.assertEqual(delivery.messages, [])
                health = until(
                    lambda c=client, t=trouble: (h := c.health()) and t in (h.trouble or "") and h
                )
                self.assertIn("next: ", str(health))
                session.close()
                self.assertEqual(len(self.notices), 1, self.notices)

    def test_a_client_may_be_closed_at_once_and_says_nothing_more(self):
        for command in (["/nowhere/reminderd"], stand_in("raise SystemExit(1)"), [REMINDERD]):
            client = self.client(command)
            told = list(self.notices)
            client.close()
            client.close()
            self.assertEqual(self.notices, told)

    def test_a_daemon_that_ends_at_once_is_started_again_after_a_pause(self):
        client = self.client(stand_in("raise SystemExit(1)"))
        self.assertEqual(until(lambda: client.health().starts >= 2 and client.health().starts), 2)
        until(lambda: client.health().status == "down")

    def test_a_session_goes_on_in_its_turn_after_a_crash(self):
        for records, again in (([], []), (None, ["standing"])):
            with self.subTest(records=records):
                client = self.client([REMINDERD, "--ephemeral"])
                reminders = [{"id": "standing", "body": "told once"}]
                session = client.session("s", records, reminders=reminders)
                session.begin_turn()
                with session.reminders() as told:
                    self.assertEqual(len(told.entries), 1)
                session.notify("reminder/stage", type="x", body="staged")
                lost = session.wait()
                self.crash(client, session)
                self.assertIsNone(session.commit(lost))
                accepted = [] if records is None else [told.record["id"]]
                self.assertEqual(session.opened()["records"]["accepted"], accepted)
                self.assertEqual([entry["type"] for entry in session.wait().entries], again)
                self.assertEqual(self.notices, [])

    def test_a_wait_that_is_under_way_when_the_daemon_crashes_gives_nothing_at_once(self):
        client = self.client()
        session = client.session("s")
        pid = client.health().pid
        session.generate("deadly", lambda params: os.kill(pid, signal.SIGKILL))
        session.begin_turn()
        # A busy machine may not ask in time, and answers without the generator.
        until(lambda: session.wait(deadline=3600.0).token is None)
        self.assertEqual(len(self.notices), 1)

    def test_a_late_answer_is_released_and_told_with_the_next_wait(self):
        late = LateDaemon()
        session = self.client(late.command).session("s")
        session.opened()
        session.begin_turn()
        session.notify("reminder/enqueue", body="still to be told")
        self.assertIsNone(session.wait(deadline=0.05).token)
        self.assertEqual(len(self.notices), 1)
        released = until(lambda: late.sent("reminder/release"))
        self.assertEqual(released["params"]["reason"], "late")
        # The daemon has less time than the client, so that its answer can be back.
        self.assertEqual(late.sent("reminder/wait")["params"]["deadlineMs"], 40)
        state = session.request("session/state")
        self.assertEqual((state["openTokens"], state["queues"]["pending"]), (0, 1))

    def test_a_session_that_another_daemon_holds_is_opened_when_it_is_free(self):
        env = private_env()
        holder = self.client(env=env)
        holder.session("s").opened()
        session = self.client(env=env).session("s")
        self.assertIsNone(session.opened())
        self.assertEqual([problem["method"] for problem in self.problems], ["session/open"])
        holder.close()
        session.begin_turn()
        self.assertEqual(session.opened()["state"], "restored")

    def test_an_interrupt_gives_up_a_wait(self):
        late = LateDaemon()
        session = self.client(late.command).session("s")
        session.begin_turn()

        def interrupt():
            until(lambda: late.sent("reminder/wait"))
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with self.assertRaises(KeyboardInterrupt):
            session.wait()
        until(lambda: late.sent("$/cancelRequest") and late.sent("reminder/release"))
        self.assertEqual(session.request("session/state")["openTokens"], 0)

    def test_health_of_a_daemon_that_is_well(self):
        client = self.client()
        client.session("s").opened()
        health = client.health()
        self.assertEqual((health.status, dict(health.sessions)), ("ready", {"s": True}))
        self.assertNotIn("next:", str(health))
        self.assertEqual(reminderd.main([REMINDERD, "--ephemeral"]), 0)
        self.assertEqual(reminderd.main(["/nowhere/reminderd"]), 1)


if __name__ == "__main__":
    unittest.main()
