"""What is particular to the client for asyncio: cancelling, and generators that are awaited."""

import asyncio
import unittest

import reminderd
from support import PATIENCE_SECONDS, REMINDERD, LateDaemon, private_env, until


async def eventually(condition):
    """Waits until a condition holds, while the client goes on."""
    return await asyncio.get_running_loop().run_in_executor(None, until, condition)


class AsyncClientTest(unittest.IsolatedAsyncioTestCase):
    async def client(self, command=(REMINDERD,), **options):
        options = {"deadline": PATIENCE_SECONDS, "env": private_env(), **options}
        return await self.enter(reminderd.AsyncClient(command, **options))

    async def enter(self, client):
        await client.start()
        self.addAsyncCleanup(client.close)
        return client

    async def test_a_conversation(self):
        session = (await self.client()).session("s")
        async with session.turn(prompt="hello"):
            session.notify("reminder/enqueue", body="told")
            async with session.reminders() as delivery:
                self.assertIn("told", delivery.messages[0]["content"])
            self.assertEqual((await session.wait()).messages, [])
        rows = (await session.request("reminder/history"))["records"]
        self.assertEqual([row["id"] for row in rows], [delivery.record["id"]])

    async def test_a_block_that_fails_releases(self):
        session = (await self.client()).session("s")
        session.begin_turn()
        session.notify("reminder/enqueue", body="still to be told")
        with self.assertRaises(ZeroDivisionError):
            async with session.reminders():
                raise ZeroDivisionError
        self.assertEqual(len((await session.wait()).messages), 1)

    async def test_a_cancelled_task_cancels_its_wait_and_leaves_no_token(self):
        late = LateDaemon()
        session = (await self.client(late.command)).session("s")
        session.begin_turn()
        waiting = asyncio.ensure_future(session.wait())
        await eventually(lambda: late.sent("reminder/wait"))
        waiting.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await waiting
        await eventually(lambda: late.sent("$/cancelRequest") and late.sent("reminder/release"))
        self.assertEqual((await session.request("session/state"))["openTokens"], 0)

    async def test_a_turn_whose_task_is_cancelled_ends_as_cancelled(self):
        session = (await self.client()).session("s")
        with self.assertRaises(asyncio.CancelledError):
            async with session.turn():
                async with session.reminders():
                    pass
                raise asyncio.CancelledError
        session.begin_turn()
        # `recovery` speaks after a cancelled turn in which a request went out, and no other end.
        self.assertEqual([entry["type"] for entry in (await session.wait()).entries], ["recovery"])

    async def test_a_generator_may_be_a_coroutine(self):
        session = (await self.client()).session("s")

        async def body(params):
            await asyncio.sleep(0)
            return "computed"

        session.generate("computed", body, policy="always")
        session.begin_turn()

        async def told():
            # A generator has 250 ms, which a busy machine may miss.
            while not (entries := (await session.wait()).entries):
                await asyncio.sleep(0.01)
            return [entry["body"] for entry in entries]

        self.assertEqual(await asyncio.wait_for(told(), PATIENCE_SECONDS), ["computed"])

    async def test_an_absent_daemon_holds_up_nothing_and_is_logged_once(self):
        with self.assertLogs("reminderd", "WARNING") as logs:
            session = (await self.client(["/nowhere/reminderd"])).session("s")
            for _ in range(3):
                async with session.turn(), session.reminders() as delivery:
                    self.assertEqual(delivery, reminderd.Delivery())
        self.assertEqual(len(logs.output), 1)


if __name__ == "__main__":
    unittest.main()
