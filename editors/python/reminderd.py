# SPDX-License-Identifier: MIT OR Apache-2.0
"""Client of reminderd, the daemon of system reminders for coding agents.

One file, the standard library, Python 3.9 or newer. `Client` is for plain scripts, `AsyncClient`
the same for asyncio; both speak about conversations::

    with reminderd.Client() as client:
        session = client.session("my-conversation", root="/home/dev/parser")
        with session.turn(prompt="the person's prompt"):
            with session.reminders() as delivery:  # committed at its end, released by an exception
                call_the_model(messages + delivery.messages)

No request waits long for reminders: when the daemon is absent, slow or gone, a WAIT says nothing
after a short deadline, and the person is told once. `python -m reminderd` says what is wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import json
import logging
import os
import sys
import threading
import time
import uuid
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING, Any, Callable, Optional, TypedDict, TypeVar, Union

if TYPE_CHECKING:
    from concurrent.futures import Future as ThreadFuture
    from types import TracebackType

__version__ = "0.1.0"

PROTOCOL_VERSION = 1
"""The version of the protocol that this client speaks."""

DEFAULT_COMMAND = ("reminderd", "connect")
"""The daemon that all clients of a user share."""

DEFAULT_DEADLINE = 0.5
"""How long a WAIT may hold up a request, in seconds, unless the client says otherwise."""

_START_SECONDS = 10.0  # that a daemon has to answer `initialize`
_END_SECONDS = 1.0  # that a daemon which was asked to end has before it is killed
_SOUND_SECONDS = 10.0  # after which a daemon that goes away is started again at once
_FIRST_PAUSE_SECONDS = 0.5  # before another start; each further pause is twice as long
_LONGEST_PAUSE_SECONDS = 30.0
_UNREAD_BYTES = 64 << 20  # that a daemon may leave unread before it is given up
_LINE_BYTES = 1 << 30  # of the longest answer
_STDERR_BYTES = 2_000  # that are kept of what the daemon says
_DAEMONS_SHARE = 0.8  # of a deadline, so that the daemon's answer is back in time
_NO_TURN = -33004

_log = logging.getLogger("reminderd")
_T = TypeVar("_T")
_Json = dict[str, Any]


# What is sent and received. Members that may be absent stand in the second class of each pair.


class Message(TypedDict):
    """What to put into the payload."""

    role: str
    content: str


class _Entry(TypedDict):
    id: str
    type: str
    label: str
    body: str
    tokens: int


class Entry(_Entry, total=False):
    """One thing that is told."""

    key: Optional[str]


class _Held(TypedDict):
    type: str
    reason: str


class Held(_Held, total=False):
    """Something that would have spoken but is kept for a later WAIT."""

    key: Optional[str]


class Ordinals(TypedDict):
    """A scope's counters, from 1."""

    turn: int
    request: int
    prompt: int


class _RecordEntry(TypedDict):
    id: str
    type: str
    kind: str
    label: str
    body: str
    fingerprint: str


class RecordEntry(_RecordEntry, total=False):
    """One entry of a record."""

    key: Optional[str]
    marks: Optional[list[str]]


class _SilentEntry(TypedDict):
    type: str
    kind: str
    fingerprint: str


class SilentEntry(_SilentEntry, total=False):
    """What was marked as told without text."""

    key: Optional[str]
    marks: Optional[list[str]]


class _InjectionRecord(TypedDict):
    type: str
    version: int
    id: str
    session: str
    turn: str
    phase: str
    form: str
    ordinals: Ordinals
    entries: list[RecordEntry]
    digest: str


class InjectionRecord(_InjectionRecord, total=False):
    """The whole of one telling: keep it beside the transcript."""

    agent: Optional[str]
    silent: Optional[list[SilentEntry]]


class Replay(TypedDict):
    """A record that the host has lost, and where it stood."""

    record: InjectionRecord
    anchor: str


class CommitResult(TypedDict):
    """The answer to a commit."""

    record: Optional[InjectionRecord]
    committed: list[str]
    held: list[str]
    already: bool


class RejectedRecord(TypedDict):
    """A record that was handed back and not taken."""

    id: str
    reason: str


class RecordsReport(TypedDict):
    """What became of the records that were handed back."""

    accepted: list[str]
    rejected: list[RejectedRecord]


class RosterRow(TypedDict):
    """One reminder of a roster."""

    id: str
    kind: str
    enabled: bool
    policy: str
    source: str


class SessionOpenResult(TypedDict):
    """The answer to `session/open`; `state` is `new`, `live` or `restored`."""

    session: str
    state: str
    records: RecordsReport
    roster: list[RosterRow]
    untrusted: list[str]


class Spent(TypedDict):
    """What telling something has cost so far, whether history still holds it or not."""

    entries: int
    tokens: int


class _ExplainRow(TypedDict):
    id: str
    kind: str
    speaks: bool
    reason: str
    tokens: int
    next: Optional[str]


class ExplainRow(_ExplainRow, total=False):
    """Why a reminder would speak now, or is silent."""

    spent: Optional[Spent]


class _ComputeParams(TypedDict):
    generator: str
    session: str
    force: bool


class ComputeParams(_ComputeParams, total=False):
    """The daemon asks for a generator's body; `force` wants an unchanged one too."""

    agent: Optional[str]


class _ProblemParams(TypedDict):
    method: str
    code: int
    message: str


class ProblemParams(_ProblemParams, total=False):
    """A message that the daemon refused."""

    leftOut: Optional[int]


@dataclasses.dataclass(frozen=True)
class Delivery:
    """The answer to a WAIT. One without a token stands for a daemon that said nothing in time."""

    token: Optional[str] = None
    phase: str = "turn-start"
    entries: list[Entry] = dataclasses.field(default_factory=list)
    message: Optional[Message] = None
    record: Optional[InjectionRecord] = None
    row: Optional[str] = None
    held: list[Held] = dataclasses.field(default_factory=list)
    tokens: int = 0
    oversize: bool = False
    replay: list[Replay] = dataclasses.field(default_factory=list)

    @property
    def messages(self) -> list[Message]:
        """The message as a list of one or none, to be added to a payload."""
        return [] if self.message is None else [self.message]


Compute = Callable[[ComputeParams], Optional[str]]
"""Gives a reminder's body; None is silence."""

AsyncCompute = Callable[[ComputeParams], Union[Optional[str], Awaitable[Optional[str]]]]
"""The same for an `AsyncClient`, which may be a coroutine function."""


# Errors


class ReminderdError(Exception):
    """What this module raises."""


class Gone(ReminderdError):
    """There is no daemon, or it went away."""


class Late(ReminderdError):
    """The daemon did not answer within the deadline."""


class Refused(ReminderdError):
    """The daemon refused a message, with a code of the protocol's "Errors"."""

    def __init__(self, code: int, message: str, data: Optional[Mapping[str, Any]]) -> None:
        super().__init__(message)
        self.code = code
        self.kind: Optional[str] = (data or {}).get("kind")
        self.hint: Optional[str] = (data or {}).get("hint")


# Records


def content_of(record: InjectionRecord) -> str:
    """The message's content that a record stands for; empty for a record without entries."""
    bodies = [entry["body"] for entry in record["entries"]]
    if not bodies or record["form"] == "plain":
        return "\n\n".join(bodies)
    blocks = ["\n\n".join(bodies)] if record["form"] == "block" else bodies
    return "\n".join(f"<system-reminder>\n{body}\n</system-reminder>" for body in blocks)


class _Records:
    """What a session's history, its root's and its agents', holds of what was told."""

    def __init__(self, records: Sequence[InjectionRecord]) -> None:
        self.all = list(records)

    def add(self, record: InjectionRecord) -> None:
        if all(known["id"] != record["id"] for known in self.all):
            self.all.append(record)

    def follow(self, method: str, agent: Optional[str], params: Mapping[str, Any]) -> None:
        """Lets go of what a history lost by this event."""
        ids = [record["id"] for record in self.all if record.get("agent") == agent]
        kept = ids
        if method == "history/cleared":
            kept = []
        elif method == "history/reported":
            kept = params["records"]
        elif method == "history/rewound":
            through = params["through"]
            kept = ids[: ids.index(through) + 1] if through in ids else []
        elif method == "history/compacted":
            retained: Union[str, Sequence[str]] = params["retained"]
            if not isinstance(retained, str):
                kept = list(retained)
            elif retained == "none":
                kept = []
        lost = set(ids) - set(kept)
        self.all = [record for record in self.all if record["id"] not in lost]


# The client


@dataclasses.dataclass(frozen=True)
class Health:
    """What a person needs to know when reminders do not come."""

    status: str
    """`starting`, `ready`, `down` (it is started again after a pause) or `closed`."""
    command: Sequence[str]
    pid: Optional[int]
    version: Optional[str]
    answered: Optional[float]
    """How long the daemon took to answer just now, in seconds; None when it did not."""
    starts: int
    trouble: Optional[str]
    stderr: str
    problems: int
    sessions: Mapping[str, bool]
    """The client's sessions, and whether the daemon has them open."""

    def __str__(self) -> str:
        lines = [
            f"status: {self.status}",
            f"command: {' '.join(self.command)} (started {self.starts} times)",
            f"version: {self.version or 'unknown'}",
            "answer: none in time"
            if self.answered is None
            else f"answer: after {self.answered * 1000:.0f} ms",
            f"sessions: {sum(self.sessions.values())} of {len(self.sessions)} open",
            f"refused messages: {self.problems}",
        ]
        if self.trouble is not None:
            lines.append(f"trouble: {self.trouble}")
        if self.stderr:
            lines.append(f"stderr: {self.stderr}")
        if self.status == "down":
            lines.append(f"next: run `{' '.join(self.command)}` in a terminal")
        elif self.answered is None:
            lines.append("next: give it more time with a longer deadline, or end the daemon")
        return "\n".join(lines)


class AsyncClient:
    """A client of one daemon, for asyncio. `async with` starts the daemon and ends it.

    command: program and arguments, `reminderd connect` unless given.
    deadline: how long a WAIT, a commit or a release may take, in seconds.
    trusted: whether the workspace's own configuration is trusted.
    config: a whole configuration file in JSON, laid over the workspace's.
    on_notice: tells the person that requests go out without reminders; called once in the
        client's life. Without it the logger `reminderd` warns.
    on_problem: hears of messages that the daemon refused; they are for logs.
    """

    def __init__(
        self,
        command: Sequence[str] = DEFAULT_COMMAND,
        *,
        deadline: float = DEFAULT_DEADLINE,
        name: str = "python",
        trusted: Optional[bool] = None,
        config: Optional[Mapping[str, Any]] = None,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        on_notice: Optional[Callable[[str], None]] = None,
        on_problem: Optional[Callable[[ProblemParams], None]] = None,
    ) -> None:
        self.command = tuple(command)
        self.deadline = deadline
        self.status = "starting"
        self._options = {
            "protocolVersion": PROTOCOL_VERSION,
            "client": {"name": name, "version": __version__},
            "trusted": trusted,
            "config": config,
        }
        self._cwd = cwd
        self._env = env
        self._on_notice = on_notice
        self._on_problem = on_problem
        self._process: Optional[asyncio.subprocess.Process] = None
        self._life: Optional[asyncio.Task[None]] = None
        self._spawned: Optional[asyncio.Future[None]] = None
        self._ended = False
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 0
        self._computing: set[asyncio.Task[None]] = set()
        self._sessions: dict[str, AsyncSession] = {}
        self._version: Optional[str] = None
        self._starts = 0
        self._trouble: Optional[str] = None
        self._stderr = b""
        self._problems = 0
        self._noticed = False

    async def start(self) -> AsyncClient:
        """Starts the daemon. Nothing is raised when there is none; a WAIT will then say nothing."""
        if self._spawned is None:
            self._spawned = asyncio.get_running_loop().create_future()
            self._life = asyncio.ensure_future(self._live())
        await asyncio.shield(self._spawned)
        return self

    async def close(self) -> None:
        """Ends the connection; a private daemon ends with it."""
        self._ended = True
        process = self._process
        if process is not None:
            with contextlib.suppress(ReminderdError):
                await self.request("shutdown", timeout=_END_SECONDS)
            self.notify("exit")
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), _END_SECONDS)
        if self._life is not None:
            self._life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._life
        self.status = "closed"

    async def __aenter__(self) -> AsyncClient:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def session(
        self, session: str, records: Optional[Sequence[InjectionRecord]] = None, **params: Any
    ) -> AsyncSession:
        """Opens a session, and opens it again whenever the daemon was started again.

        `records` are those that history holds, if the client keeps the transcript: an empty list at
        first. They are handed back, with those of later commits, at each opening. Without them the
        daemon's own ledger stands. `params` are the other members of `session/open`. A session that
        this client has open already is given as it is.
        """
        known = self._sessions.get(session)
        if known is None:
            known = AsyncSession(self, session, records, params)
            self._sessions[session] = known
            known._send_open()
        return known

    def notify(self, method: str, /, **params: Any) -> None:
        """Sends a message that is not answered. Without a daemon it is lost, as that itself is."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def request(
        self, method: str, /, *, timeout: Optional[float] = None, **params: Any
    ) -> Any:
        """Asks the daemon. Raises `Refused`, `Late` after `timeout` seconds, or `Gone`."""
        return await self._answer(self._ask(method, params), method, timeout)

    async def health(self) -> Health:
        """Asks the daemon whether it is well. Raises nothing."""
        asked = time.monotonic()
        answered: Optional[float] = None
        with contextlib.suppress(ReminderdError):
            await self.request("session/list", timeout=self.deadline)
            answered = time.monotonic() - asked
        return Health(
            status=self.status,
            command=self.command,
            pid=None if self._process is None else self._process.pid,
            version=self._version,
            answered=answered,
            starts=self._starts,
            trouble=self._trouble,
            stderr=self._stderr.decode(errors="replace").strip(),
            problems=self._problems,
            sessions={name: session.open for name, session in self._sessions.items()},
        )

    # Asking

    def _ask(self, method: str, params: Mapping[str, Any]) -> _Asked:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # Whoever gave up an answer does not ask for its error any more.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._next_id += 1
        number = self._next_id
        if self._process is None:
            future.set_exception(Gone(self._trouble or "the client is not started"))
        else:
            self._pending[number] = future
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return _Asked(number, future)

    async def _answer(self, asked: _Asked, method: str, timeout: Optional[float]) -> Any:
        """The answer; one that is not waited for to its end is cancelled at the daemon."""
        try:
            return await asyncio.wait_for(asyncio.shield(asked.future), timeout)
        except (asyncio.TimeoutError, asyncio.CancelledError) as error:
            if not asked.future.done():
                self.notify("$/cancelRequest", id=asked.number)
            if isinstance(error, asyncio.CancelledError):
                raise
            raise Late(f"{method} was not answered within {timeout} s") from None

    def _send(self, message: _Json) -> None:
        if self._process is None or self._process.stdin is None:
            return
        stdin = self._process.stdin
        if stdin.transport.get_write_buffer_size() > _UNREAD_BYTES:
            # Its end is noticed, and told, where it is read from.
            self._process.kill()
            return
        stdin.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")

    def _report(self, method: str, error: ReminderdError) -> None:
        """Notes a failure. Where it means that reminders are missing, the person is told once."""
        if isinstance(error, Refused):
            self._problem({"method": method, "code": error.code, "message": str(error)})
            if method not in ("reminder/wait", "session/open"):
                return
        self._trouble = self._trouble or str(error)
        if self._noticed or self._ended:
            return
        self._noticed = True
        notice = f"reminderd: requests go out without reminders ({error})"
        if self._on_notice is not None:
            self._on_notice(notice)
        else:
            _log.warning("%s", notice)

    def _problem(self, problem: ProblemParams) -> None:
        self._problems += 1
        if self._on_problem is not None:
            self._on_problem(problem)

    # The daemon's life

    async def _live(self) -> None:
        """Starts the daemon, and starts it again, with growing pauses when it does not last."""
        failures = 0
        while not self._ended:
            started = time.monotonic()
            self._become("starting")
            self._starts += 1
            try:
                reason = await self._serve()
            except OSError as error:
                reason = f"{self.command[0]} does not start: {error.strerror}"
            if self._ended:
                return
            self._trouble = reason
            # One that was there and went away is missed only by a request before the next one.
            if self.status != "ready":
                self._report("initialize", Gone(reason))
            self._become("down")
            self._attempted()
            failures = 0 if time.monotonic() - started > _SOUND_SECONDS else failures + 1
            if failures > 0:
                pause = _FIRST_PAUSE_SECONDS * 2 ** (failures - 1)
                await asyncio.sleep(min(pause, _LONGEST_PAUSE_SECONDS))

    def _become(self, status: str) -> None:
        self.status = status

    def _attempted(self) -> None:
        if self._spawned is not None and not self._spawned.done():
            self._spawned.set_result(None)

    async def _serve(self) -> str:
        """One process from its start to its end, which is told in words."""
        process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._cwd,
            env=self._env,
            limit=_LINE_BYTES,
        )
        assert process.stdout is not None and process.stderr is not None
        self._process = process
        self._stderr = b""
        asked = self._ask(
            "initialize",
            {"processId": os.getpid(), "capabilities": {}, "initializationOptions": self._options},
        )
        # What stands behind `initialize` need not wait for its answer to be read.
        self.notify("initialized")
        for session in self._sessions.values():
            session._reopen()
        hello = asyncio.ensure_future(self._greet(process, asked))
        words = asyncio.ensure_future(self._listen(process.stderr))
        self._attempted()
        try:
            unreadable = await self._read(process.stdout)
            refused = hello.result() if hello.done() else None
            return unreadable or refused or await self._last_words(process, words)
        finally:
            self._process = None
            for session in self._sessions.values():
                session.open = False
            for task in (hello, words, *self._computing):
                task.cancel()
            for future in self._pending.values():
                if not future.done():
                    future.set_exception(Gone("the daemon went away"))
            self._pending.clear()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), _END_SECONDS)

    async def _greet(self, process: asyncio.subprocess.Process, asked: _Asked) -> Optional[str]:
        """Takes the answer to `initialize`; ends a process that does not give a good one."""
        try:
            server = await self._answer(asked, "initialize", _START_SECONDS)
        except ReminderdError as error:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            return str(error)
        self._version = server["serverInfo"].get("version")
        self.status = "ready"
        return None

    async def _read(self, stdout: asyncio.StreamReader) -> Optional[str]:
        """Takes what the daemon says until it says no more, or nothing that can be read."""
        while line := await stdout.readline():
            try:
                message = json.loads(line)
                self._take(message)
            except (ValueError, AttributeError, KeyError, TypeError):
                return f"{self.command[0]} says what can't be read"
        return None

    async def _listen(self, stderr: asyncio.StreamReader) -> None:
        while part := await stderr.read(4096):
            self._stderr = (self._stderr + part)[-_STDERR_BYTES:]

    async def _last_words(
        self, process: asyncio.subprocess.Process, words: asyncio.Future[None]
    ) -> str:
        # A child of the process may keep its stderr open.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(words), 0.1)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), 0.1)
        if process.returncode is None:
            return f"{self.command[0]} closed its output"
        said = self._stderr.decode(errors="replace").strip().rpartition("\n")[2]
        reason = f"{self.command[0]} ended with status {process.returncode}"
        return f"{reason}: {said}" if said else reason

    def _take(self, message: _Json) -> None:
        method = message.get("method")
        if method == "reminder/compute":
            task = asyncio.ensure_future(self._compute(message["id"], message["params"]))
            self._computing.add(task)
            task.add_done_callback(self._computing.discard)
        elif method == "reminderd/problem":
            self._problem(message["params"])
        elif method is None:
            future = self._pending.pop(message["id"], None)
            if future is None or future.done():
                return
            error = message.get("error")
            if error is None:
                future.set_result(message["result"])
            else:
                refused = Refused(error["code"], error["message"], error.get("data"))
                future.set_exception(refused)

    async def _compute(self, number: object, params: ComputeParams) -> None:
        answer: _Json = {"jsonrpc": "2.0", "id": number}
        try:
            session = self._sessions[params["session"]]
            body = session._generator(params)(params)
            answer["result"] = {"body": await body if inspect.isawaitable(body) else body}
        except Exception as error:  # whatever a generator raises concerns its reminder alone
            answer["error"] = {"code": -32603, "message": f"{type(error).__name__}: {error}"}
        self._send(answer)


@dataclasses.dataclass(frozen=True)
class _Asked:
    number: int
    future: asyncio.Future[Any]


class AsyncConversation:
    """A session's root, or one of its agents."""

    def __init__(
        self, client: AsyncClient, scope: Mapping[str, str], records: Optional[_Records]
    ) -> None:
        self._client = client
        self._scope = dict(scope)
        self._records = records
        self._generators: dict[str, AsyncCompute] = {}
        self._forms: dict[str, _Json] = {}
        self._turn: Optional[_Json] = None

    def notify(self, method: str, /, **params: Any) -> None:
        """Reports an event of this conversation. It is not answered."""
        self._client.notify(method, **self._scope, **params)
        if self._records is not None and method.startswith("history/"):
            self._records.follow(method, self._scope.get("agent"), params)

    async def request(
        self, method: str, /, *, timeout: Optional[float] = None, **params: Any
    ) -> Any:
        """Asks about this conversation, or reports an event and waits until it took effect."""
        return await self._client.request(method, timeout=timeout, **self._scope, **params)

    def begin_turn(self, turn: Optional[str] = None, prompt: Optional[str] = None) -> str:
        """Begins a turn, under an id that this conversation has not used before."""
        turn = uuid.uuid4().hex if turn is None else turn
        self._turn = {"turn": turn, "prompt": prompt}
        self._send_turn(again=False)
        return turn

    def end_turn(self, outcome: str = "completed") -> None:
        """Ends the turn that is open: `completed`, `cancelled` or `failed`."""
        if self._turn is not None:
            self.notify("turn/end", turn=self._turn["turn"], outcome=outcome)
            self._turn = None

    @contextlib.asynccontextmanager
    async def turn(
        self, turn: Optional[str] = None, prompt: Optional[str] = None
    ) -> AsyncGenerator[str, None]:
        """A turn around a block: cancelled or failed when that is left by an exception."""
        with _turn(self, turn, prompt) as name:
            yield name

    async def wait(
        self,
        *,
        deadline: Optional[float] = None,
        seam: Optional[str] = None,
        limit: Optional[Mapping[str, int]] = None,
        **params: Any,
    ) -> Delivery:
        """What the model should be told with the request that is being prepared.

        Commit it once the payload holds its message, or release it. When there is no daemon, or it
        does not answer within `deadline` seconds (the client's unless given), the delivery is
        empty, nothing counts as told, and the next WAIT offers all of it. A task that is cancelled
        meanwhile cancels the WAIT.
        """
        client = self._client
        deadline = client.deadline if deadline is None else deadline
        asked = client._ask(
            "reminder/wait",
            {
                **self._scope,
                **params,
                "seam": seam,
                "limit": limit,
                "deadlineMs": int(deadline * _DAEMONS_SHARE * 1000),
            },
        )
        try:
            return _delivery(await client._answer(asked, "reminder/wait", deadline))
        except ReminderdError as error:
            client._report("reminder/wait", error)
            return Delivery()
        finally:
            # The answer to a request that was given up may be under way all the same.
            if not asked.future.done():
                asked.future.add_done_callback(self._release_late)

    async def commit(
        self,
        delivery: Delivery,
        *,
        entries: Optional[Sequence[str]] = None,
        placement: Optional[str] = None,
    ) -> Optional[CommitResult]:
        """Says that the payload holds the delivery's message, or of it only `entries`.

        None when the daemon did not take it: nothing counts as told, and it is offered again.
        """
        if delivery.token is None:
            return None
        client = self._client
        asked = client._ask(
            "reminder/commit",
            {"token": delivery.token, "entries": entries, "placement": placement},
        )
        asked.future.add_done_callback(self._remember)
        try:
            result: CommitResult = await client._answer(asked, "reminder/commit", client.deadline)
            return result
        except ReminderdError as error:
            client._report("reminder/commit", error)
            return None

    async def release(self, delivery: Delivery, reason: Optional[str] = None) -> None:
        """Says that the message never came to be: the next WAIT offers the same again."""
        if delivery.token is None:
            return
        client = self._client
        try:
            await client.request(
                "reminder/release", timeout=client.deadline, token=delivery.token, reason=reason
            )
        except ReminderdError as error:
            client._report("reminder/release", error)

    @contextlib.asynccontextmanager
    async def reminders(self, **options: Any) -> AsyncGenerator[Delivery, None]:
        """A WAIT around the call of a model: committed at its end, released by an exception."""
        delivery = await self.wait(**options)
        try:
            yield delivery
        except BaseException as error:
            await self.release(delivery, type(error).__name__)
            raise
        await self.commit(delivery)

    def generate(self, id: str, generator: AsyncCompute, **form: Any) -> None:
        """Registers a reminder whose body is computed here at each WAIT, within 250 ms."""
        self._generators[id] = generator
        self._forms[id] = {**form, "id": id, "client": True}
        self.notify("roster/register", reminder=self._forms[id])

    def _restore(self) -> None:
        """Says again what the daemon has to know of a conversation that goes on."""
        for form in self._forms.values():
            self.notify("roster/register", reminder=form)
        if self._turn is not None:
            self._send_turn(again=True)

    def _send_turn(self, again: bool) -> None:
        asked = self._client._ask("turn/begin", {**self._scope, **(self._turn or {})})

        def begun(future: asyncio.Future[Any]) -> None:
            error = None if future.cancelled() else future.exception()
            # A shared daemon that was there all the time has the turn still open.
            if isinstance(error, Refused) and not (again and error.code == _NO_TURN):
                self._client._report("turn/begin", error)

        asked.future.add_done_callback(begun)

    def _release_late(self, future: asyncio.Future[Any]) -> None:
        if not future.cancelled() and future.exception() is None:
            token = future.result()["token"]
            self._client._ask("reminder/release", {"token": token, "reason": "late"})

    def _remember(self, future: asyncio.Future[Any]) -> None:
        if self._records is None or future.cancelled() or future.exception() is not None:
            return
        record = future.result()["record"]
        if record is not None:
            self._records.add(record)


class AsyncAgent(AsyncConversation):
    """An agent: a child conversation of a session. Made by `AsyncSession.agent`."""

    def __init__(self, session: AsyncSession, path: str, params: Mapping[str, Any]) -> None:
        super().__init__(session._client, {"session": session.id, "agent": path}, session._records)
        self._session = session
        self._spawn = dict(params)
        self.notify("agent/spawn", **self._spawn)

    def settle(self, outcome: str = "succeeded") -> None:
        """Ends the agent: `succeeded`, `failed` or `interrupted`."""
        self.notify("agent/settle", outcome=outcome)
        self._session._agents.pop(self._scope["agent"], None)

    def _restore(self) -> None:
        # An agent that still runs is refused, as it should be.
        self._client._ask("agent/spawn", {**self._scope, **self._spawn})
        super()._restore()


class AsyncSession(AsyncConversation):
    """One conversation, with its agents. Made by `AsyncClient.session`."""

    def __init__(
        self,
        client: AsyncClient,
        session: str,
        records: Optional[Sequence[InjectionRecord]],
        params: Mapping[str, Any],
    ) -> None:
        kept = None if records is None else _Records(records)
        super().__init__(client, {"session": session}, kept)
        self.id = session
        self.open = False
        self._params = dict(params)
        self._agents: dict[str, AsyncAgent] = {}
        self._refused = False
        self._opening: Optional[asyncio.Future[Any]] = None

    @property
    def records(self) -> list[InjectionRecord]:
        """The records that history holds; empty when the client keeps none."""
        return [] if self._records is None else list(self._records.all)

    async def opened(self) -> Optional[SessionOpenResult]:
        """What the daemon answered when the session was last opened; None when it did not."""
        assert self._opening is not None
        try:
            result: SessionOpenResult = await asyncio.shield(self._opening)
            return result
        except ReminderdError:
            return None

    def agent(self, path: str, **params: Any) -> AsyncAgent:
        """Begins an agent. A running agent of that path is given as it is."""
        if path not in self._agents:
            self._agents[path] = AsyncAgent(self, path, params)
        return self._agents[path]

    def begin_turn(self, turn: Optional[str] = None, prompt: Optional[str] = None) -> str:
        """Begins a turn, and opens a session that could not be opened so far."""
        # What stood in the way, another daemon say, may be gone by now.
        if self._refused:
            self._send_open()
        return super().begin_turn(turn, prompt)

    async def close(self, *, forget: bool = False) -> None:
        """Closes the session. With `forget`, everything stored about it is erased."""
        client = self._client
        client._sessions.pop(self.id, None)
        self.open = False
        try:
            await self.request("session/close", timeout=client.deadline, forget=forget)
        except ReminderdError as error:
            client._report("session/close", error)

    def _send_open(self) -> None:
        self.open = self._refused = False
        params: _Json = {**self._params, **self._scope}
        if self._records is not None:
            params["records"] = self._records.all
        self._opening = self._client._ask("session/open", params).future
        self._opening.add_done_callback(self._was_opened)

    def _was_opened(self, future: asyncio.Future[Any]) -> None:
        error = None if future.cancelled() else future.exception()
        self.open = error is None
        self._refused = isinstance(error, Refused)
        if isinstance(error, ReminderdError):
            self._client._report("session/open", error)

    def _reopen(self) -> None:
        self._send_open()
        self._restore()
        # Parents were made before their children.
        for agent in self._agents.values():
            agent._restore()

    def _generator(self, asked: ComputeParams) -> AsyncCompute:
        """Who computes a reminder: an agent's own generators go before the session's."""
        agent = self._agents.get(asked.get("agent") or "")
        generators = {**self._generators, **({} if agent is None else agent._generators)}
        return generators[asked["generator"]]


def _delivery(answer: Mapping[str, Any]) -> Delivery:
    names = {field.name for field in dataclasses.fields(Delivery)}
    given = {name: value for name, value in answer.items() if name in names and value is not None}
    return Delivery(**given)


@contextlib.contextmanager
def _turn(
    conversation: Union[AsyncConversation, Conversation],
    turn: Optional[str],
    prompt: Optional[str],
) -> Generator[str, None, None]:
    name = conversation.begin_turn(turn, prompt)
    try:
        yield name
    except BaseException as error:
        cancelled = isinstance(error, (asyncio.CancelledError, KeyboardInterrupt))
        conversation.end_turn("cancelled" if cancelled else "failed")
        raise
    conversation.end_turn("completed")


# The same without asyncio: every call is carried out on an event loop in a thread of its own.


class Client:
    """A client of one daemon, for plain scripts. The arguments are those of `AsyncClient`.

    `on_notice` and `on_problem` are called in the client's own thread and must not use it.
    """

    def __init__(self, command: Sequence[str] = DEFAULT_COMMAND, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="reminderd", daemon=True
        )
        self._thread.start()
        self._sessions: dict[str, Session] = {}
        self._client: AsyncClient = self._call(_started(command, options))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; a private daemon ends with it."""
        if self._loop.is_closed():
            return
        self._call(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def session(
        self, session: str, records: Optional[Sequence[InjectionRecord]] = None, **params: Any
    ) -> Session:
        """Opens a session: see `AsyncClient.session`."""
        inner = self._now(lambda: self._client.session(session, records, **params))
        known = self._sessions.get(session)
        if known is None or known._inner is not inner:
            known = self._sessions[session] = Session(self, inner)
        return known

    def notify(self, method: str, /, **params: Any) -> None:
        """Sends a message that is not answered."""
        self._now(lambda: self._client.notify(method, **params))

    def request(self, method: str, /, *, timeout: Optional[float] = None, **params: Any) -> Any:
        """Asks the daemon. Raises `Refused`, `Late` after `timeout` seconds, or `Gone`."""
        return self._call(self._client.request(method, timeout=timeout, **params))

    def health(self) -> Health:
        """Asks the daemon whether it is well. Raises nothing."""
        return self._call(self._client.health())

    def _call(self, work: Coroutine[Any, Any, _T]) -> _T:
        future: ThreadFuture[_T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # An interrupted script gives up what it was waiting for.
            future.cancel()
            raise

    def _now(self, act: Callable[[], _T]) -> _T:
        async def work() -> _T:
            return act()

        return self._call(work())


async def _started(command: Sequence[str], options: Mapping[str, Any]) -> AsyncClient:
    return await AsyncClient(command, **options).start()


class Conversation:
    """A session's root, or one of its agents: see `AsyncConversation`."""

    def __init__(self, client: Client, inner: AsyncConversation) -> None:
        self._client = client
        self._conversation = inner

    def notify(self, method: str, /, **params: Any) -> None:
        """Reports an event of this conversation. It is not answered."""
        self._client._now(lambda: self._conversation.notify(method, **params))

    def request(self, method: str, /, *, timeout: Optional[float] = None, **params: Any) -> Any:
        """Asks about this conversation, or reports an event and waits until it took effect."""
        return self._client._call(self._conversation.request(method, timeout=timeout, **params))

    def begin_turn(self, turn: Optional[str] = None, prompt: Optional[str] = None) -> str:
        """Begins a turn, under an id that this conversation has not used before."""
        return self._client._now(lambda: self._conversation.begin_turn(turn, prompt))

    def end_turn(self, outcome: str = "completed") -> None:
        """Ends the turn that is open: `completed`, `cancelled` or `failed`."""
        self._client._now(lambda: self._conversation.end_turn(outcome))

    @contextlib.contextmanager
    def turn(
        self, turn: Optional[str] = None, prompt: Optional[str] = None
    ) -> Generator[str, None, None]:
        """A turn around a block: cancelled or failed when that is left by an exception."""
        with _turn(self, turn, prompt) as name:
            yield name

    def wait(self, **options: Any) -> Delivery:
        """What the model should be told with the next request: see `AsyncConversation.wait`."""
        return self._client._call(self._conversation.wait(**options))

    def commit(self, delivery: Delivery, **options: Any) -> Optional[CommitResult]:
        """Says that the payload holds the message: see `AsyncConversation.commit`."""
        return self._client._call(self._conversation.commit(delivery, **options))

    def release(self, delivery: Delivery, reason: Optional[str] = None) -> None:
        """Says that the message never came to be: the next WAIT offers the same again."""
        self._client._call(self._conversation.release(delivery, reason))

    @contextlib.contextmanager
    def reminders(self, **options: Any) -> Generator[Delivery, None, None]:
        """A WAIT around the call of a model: committed at its end, released by an exception."""
        delivery = self.wait(**options)
        try:
            yield delivery
        except BaseException as error:
            self.release(delivery, type(error).__name__)
            raise
        self.commit(delivery)

    def generate(self, id: str, generator: Compute, **form: Any) -> None:
        """Registers a reminder whose body is computed here, in a thread, within 250 ms."""

        async def in_a_thread(asked: ComputeParams) -> Optional[str]:
            return await asyncio.get_running_loop().run_in_executor(None, generator, asked)

        self._client._now(lambda: self._conversation.generate(id, in_a_thread, **form))


class Agent(Conversation):
    """An agent: a child conversation of a session. Made by `Session.agent`."""

    def __init__(self, client: Client, inner: AsyncAgent) -> None:
        super().__init__(client, inner)
        self._inner = inner

    def settle(self, outcome: str = "succeeded") -> None:
        """Ends the agent: `succeeded`, `failed` or `interrupted`."""
        self._client._now(lambda: self._inner.settle(outcome))


class Session(Conversation):
    """One conversation, with its agents. Made by `Client.session`."""

    def __init__(self, client: Client, inner: AsyncSession) -> None:
        super().__init__(client, inner)
        self._inner = inner

    @property
    def id(self) -> str:
        """The session's id."""
        return self._inner.id

    @property
    def open(self) -> bool:
        """Whether the daemon has the session open."""
        return self._inner.open

    @property
    def records(self) -> list[InjectionRecord]:
        """The records that history holds; empty when the client keeps none."""
        return self._inner.records

    def opened(self) -> Optional[SessionOpenResult]:
        """What the daemon answered when the session was last opened; None when it did not."""
        return self._client._call(self._inner.opened())

    def agent(self, path: str, **params: Any) -> Agent:
        """Begins an agent. A running agent of that path is given as it is."""
        return Agent(self._client, self._client._now(lambda: self._inner.agent(path, **params)))

    def close(self, *, forget: bool = False) -> None:
        """Closes the session. With `forget`, everything stored about it is erased."""
        self._client._call(self._inner.close(forget=forget))


# Pytest loads this file as a plug-in, and is not asked for by anybody else.

if TYPE_CHECKING or "pytest" in sys.modules:
    import pathlib

    import pytest

    @pytest.fixture
    def reminderd(tmp_path: pathlib.Path) -> Iterator[Client]:
        """A client of a daemon of the test's own, which remembers nothing.

        The program is that of the environment variable `REMINDERD`, or `reminderd`.
        """
        place = str(tmp_path / "reminderd")
        env = dict(os.environ, XDG_CONFIG_HOME=place, XDG_RUNTIME_DIR=place, XDG_STATE_HOME=place)
        command = [os.environ.get("REMINDERD", "reminderd"), "--ephemeral"]
        with Client(command, env=env, deadline=_START_SECONDS) as client:
            health = client.health()
            if health.answered is None:
                pytest.fail(str(health), pytrace=False)
            yield client


def main(arguments: Sequence[str]) -> int:
    """`python -m reminderd [COMMAND…]`: whether the daemon can be spoken to."""
    _log.disabled = True  # what it would say is part of what is printed
    with Client(arguments or DEFAULT_COMMAND, deadline=5.0) as client:
        health = client.health()
    _log.disabled = False
    print(health)
    return 0 if health.answered is not None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
