"""What tests share: a client with short words, bounded waits, and a census of processes."""

import contextlib
import ctypes
import errno
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import mcp_types as types
import orjson
import pytest
from anyio.abc import TaskGroup
from clocks import TIMES
from mcp import Client

from tmux_debug_mcp.audit import AuditLog
from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.archive import Archive, IndexEntry
from tmux_debug_mcp.logs.excerpts import Excerpt
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.pane_text import PaneText
from tmux_debug_mcp.logs.seen import read_ends
from tmux_debug_mcp.panes.caller_session import CallerSession
from tmux_debug_mcp.panes.engine import Engine, open_engine
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.server import build
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tmux import supervisor
from tmux_debug_mcp.tools.records import Records
from tmux_debug_mcp.tools.toolbox import Toolbox
from tmux_debug_mcp.tools.toolset import Outcome, choose
from tmux_debug_mcp.vt.rows import NOTE

T = TypeVar("T")

# What the audit calls the server in this process.
RUN = "20260130T101546-4711"
# Everything here takes milliseconds, and seconds where the machine is busy. A test that waits this
# long has failed.
PATIENCE_S = 60.0
# Between two looks at something that no event tells of: at first, and at most. A look takes
# processor time, which may be what the other side waits for.
POLL_S, MAX_POLL_S = 0.005, 0.03

# The shells in which commands can be run, each without its user's settings.
SHELLS = {
    "bash": "bash --norc",
    "dash": "dash",
    "zsh": "zsh -f",
    "fish": "fish --no-config",
    "busybox": "busybox sh",
}


class Caller:
    """Calls tools with a real client.

    Args:
        client: The client.
        engine: The engine behind it, when it is in this process.
        prefix: What the names of the tools begin with.
    """

    def __init__(self, client: Client, engine: Engine | None = None, prefix: str = "tmux_") -> None:
        self.client = client
        self.in_process = engine
        self.prefix = prefix

    @property
    def engine(self) -> Engine:
        """The engine behind the tools, when it is in this process."""
        assert self.in_process is not None
        return self.in_process

    async def call(self, tool: str, /, **arguments: Any) -> types.CallToolResult:  # noqa: ANN401
        """Call a tool and return the result, an error or not."""
        with anyio.fail_after(PATIENCE_S):
            return await self.client.call_tool(f"{self.prefix}{tool}", arguments)

    async def json(self, tool: str, /, **arguments: Any) -> Any:  # noqa: ANN401
        """Return what the only block of a call that succeeds has."""
        [block] = await self.blocks(tool, **arguments)
        return orjson.loads(block)

    async def blocks(self, tool: str, /, **arguments: Any) -> list[str]:  # noqa: ANN401
        """Return the blocks of a call that succeeds."""
        result = await self.call(tool, **arguments)
        assert not result.is_error, texts(result)
        return texts(result)

    async def answer(self, tool: str, /, **arguments: Any) -> tuple[list[str], Mapping[str, Any]]:  # noqa: ANN401
        """Return the blocks of a call that succeeds, and what is said of it for programs."""
        result = await self.call(tool, **arguments)
        assert not result.is_error, texts(result)
        assert result.meta is not None
        return texts(result), result.meta

    async def error(self, tool: str, /, **arguments: Any) -> str:  # noqa: ANN401
        """Return the text of a call that fails."""
        result = await self.call(tool, **arguments)
        assert result.is_error, texts(result)
        [text] = texts(result)
        return text

    async def text(self, tool: str, /, **arguments: Any) -> str:  # noqa: ANN401
        """Return the only block of a call that succeeds."""
        [block] = await self.blocks(tool, **arguments)
        return block


class Tools(Caller):
    """The tools of the toolset `debug`, unless another is said."""

    async def create(self, command: str, **arguments: Any) -> str:  # noqa: ANN401
        """Return the id of a new pane; without `wait_for` it is not observed."""
        if "wait_for" not in arguments:
            arguments.setdefault("timeout_s", 0)
        _, facts = await self.answer("create_pane", command=command, **arguments)
        pane_id = str(facts["pane_id"])
        for pane in self._panes(pane_id):
            await begun(pane)
        return pane_id

    def _panes(self, pane_id: str) -> list[Pane]:
        """Return the pane of this id; none if the engine is in another process."""
        panes = self.in_process.panes if self.in_process else []
        return [pane for pane in panes if pane.id == pane_id]

    async def send(self, pane_id: str, keys: str | list[str], **arguments: Any) -> list[str]:  # noqa: ANN401
        """Send keys; a single step without `wait_for` is not observed."""
        is_one_step = isinstance(keys, str) and "\n" not in keys.rstrip("\n")
        if is_one_step and "wait_for" not in arguments:
            arguments.setdefault("timeout_s", 0)
        return await self.blocks("send_keys", pane_id=pane_id, keys=keys, **arguments)

    async def capture(self, pane_id: str, **arguments: Any) -> str:  # noqa: ANN401
        """Return a pane's text."""
        return (await self.blocks("capture_pane", pane_id=pane_id, **arguments))[0]

    async def state(self, pane_id: str) -> Mapping[str, Any]:
        """Return what a result says of a pane for programs."""
        result = await self.call("capture_pane", pane_id=pane_id, lines=1)
        assert result.meta is not None, texts(result)
        return result.meta

    async def shows(self, pane_id: str, text: str, **arguments: Any) -> str:  # noqa: ANN401
        """Wait until a capture of the pane has the text, and return the capture."""
        capture = partial(self.capture, pane_id, **arguments)
        return await until(capture, lambda captured: text in captured)

    async def shows_foreground(self, pane_id: str, name: str) -> None:
        """Wait until this program has the pane's terminal."""
        await until(partial(self.state, pane_id), lambda state: state.get("foreground") == name)

    async def exited(self, pane_id: str) -> Mapping[str, Any]:
        """Wait until the pane's program has ended, and return what is said of it."""
        for pane in self._panes(pane_id):
            await until(pane.ending, bool)  # takes less than a call
        return await until(partial(self.state, pane_id), lambda state: state["status"] != "running")


class Gate:
    """A FIFO at which a command stops, as with `cat {gate}`, until it is opened."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._path = path

    def __str__(self) -> str:
        """Return the path as a word for a shell."""
        return shlex.quote(str(self._path))

    def opens(self) -> bool:
        """Let the command that has come to the gate go on; tell whether one has come."""
        try:
            os.close(os.open(self._path, os.O_WRONLY | os.O_NONBLOCK))
        except OSError as error:
            if error.errno != errno.ENXIO:  # nobody reads
                raise
            return False
        return True

    async def open(self) -> None:
        """Wait until a command has come to the gate, and let it go on."""
        await eventually(self.opens)


@contextlib.contextmanager
def few_files(free: int) -> Iterator[None]:
    """Let this process open only so many more files, for the time of the block."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 1 + free, before[1]))
    held = []
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(free):
            os.close(held.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for fd in held:
            os.close(fd)


def log_writer(pane: Pane) -> int:
    """Return the process that writes the pane's log, once it has opened it."""

    def writers() -> list[int]:
        children = processes.children(pane.client.server_pid)
        return [pid for pid in children if pane.log.is_at(f"/proc/{pid}/fd/1")]

    [writer] = ask_until(writers, bool)
    return writer


# From the kernel's linux/ptrace.h and linux/wait.h.
_PTRACE_SEIZE, _PTRACE_INTERRUPT, _PTRACE_DETACH, _WALL = 0x4206, 0x4207, 17, 0x40000000


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Freeze a descendant of ours during the block. Unlike a stopped one, no signal wakes it.

    Nor does it end before it is thawed. Source: ptrace(2).
    """

    def trace(request: int) -> None:
        words = (ctypes.c_long(request), ctypes.c_long(pid), None, None)
        assert libc.ptrace(*words) == 0, os.strerror(ctypes.get_errno())

    libc = ctypes.CDLL(None, use_errno=True)
    trace(_PTRACE_SEIZE)
    trace(_PTRACE_INTERRUPT)
    os.waitpid(pid, _WALL)
    try:
        yield
    finally:
        trace(_PTRACE_DETACH)


@contextlib.contextmanager
def late_log(pane: Pane, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stop the writer of a pane's log until the log is drained, or to the end of the block."""
    writer, drain = log_writer(pane), pane.drain

    async def drain_later() -> bool:
        os.kill(writer, signal.SIGCONT)
        return await drain()

    monkeypatch.setattr(pane, "drain", drain_later)
    os.kill(writer, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(writer, signal.SIGCONT)


async def run(
    tools: Tools,
    command: str,
    pane_id: str | None = None,
    **arguments: Any,  # noqa: ANN401
) -> tuple[str, Mapping[str, Any], str]:
    """Return the output, what is said of it for programs, and the last line."""
    arguments |= {"pane_id": pane_id} if pane_id else {}
    blocks, facts = await tools.answer("run", command=command, **arguments)
    return blocks[0], facts, blocks[-1]


async def call_in_session(
    toolbox: Toolbox,
    session: CallerSession,
    tool: str,
    **arguments: Any,  # noqa: ANN401
) -> types.CallToolResult:
    """Call a tool of `debug` as a caller who has been shown what the session says."""

    async def report(_seconds: float) -> None:
        pass

    return await toolbox.call(f"tmux_{tool}", arguments, report, session)


def texts(result: types.CallToolResult) -> list[str]:
    """Return the texts of a result's blocks."""
    return [block.text for block in result.content if isinstance(block, types.TextContent)]


@asynccontextmanager
async def in_process(
    settings: Settings,
    audit: AuditLog | None = None,
    toolsets: str = "debug",
    archive: Archive | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Tools]:
    """Serve in this process, to a real client in memory."""
    chosen = choose(toolsets)
    async with (
        open_engine(settings, archive, clock or Clock(TIMES)) as engine,
        Client(build(Toolbox(chosen, engine, Records(audit, RUN)))) as client,
    ):
        yield Tools(client, engine, "tmux_" if toolsets == "debug" else "")


def kept_hole(directory: Path, text: bytes) -> Path:
    """Return the file of a log kept there: a text, and then a hole of 64 GiB, as after a crash."""
    log = directory / "20260101T000000-4711/debug-1.log"
    log.parent.mkdir(parents=True)
    entry = IndexEntry(
        id="debug-1",
        window="@1",
        name="web",
        command="true",
        mark="0" * 64,
        columns=80,
        rows=24,
        started_at=1769768146.0,
    )
    log.with_name("index.jsonl").write_bytes(entry.line())
    log.write_bytes(text)
    os.truncate(log, 64 << 30)
    return log


def excerpt_of(lines: Sequence[str], notes: Sequence[int], cut_bytes: int = 0) -> Excerpt:
    """Return an excerpt, given the indexes of its notes."""
    marked = [NOTE + line if number in notes else line for number, line in enumerate(lines)]
    return Excerpt(marked, cut_bytes)


async def abridged(
    log: Log, start: int, end: int, max_characters: int, *, folds: bool = False
) -> Excerpt:
    """Return a part of a log as the output of a run is read."""
    text = await PaneText.to_read(log, start, end)
    return await read_ends(text, end, max_characters, folds=folds)


def run_of(tools: Caller) -> str:
    """Return the name of the server run, where logs are kept."""
    assert tools.engine.archive is not None
    return tools.engine.archive.run


def done(work: Generator[int, None, T]) -> T:
    """Return what work returns that is done in pieces."""
    try:
        while True:
            next(work)
    except StopIteration as end:
        result: T = end.value
        return result


def pauses() -> Iterator[float]:
    """Yield how long to wait between two looks, each time a little longer."""
    pause_s = POLL_S
    while True:
        yield pause_s
        pause_s = min(1.5 * pause_s, MAX_POLL_S)


def answers_to(tasks: TaskGroup, call: Coroutine[Any, Any, T]) -> list[T]:
    """Start a call as a task; return a list that gets its answer."""
    answers: list[T] = []

    async def collect() -> None:
        answers.append(await call)

    tasks.start_soon(collect)
    return answers


async def begun(pane: Pane) -> None:
    """Wait until the command of a pane has begun."""
    with anyio.fail_after(PATIENCE_S):
        while (leader := pane.place.living_leader()) and not leader.has_begun_command:
            await anyio.sleep(0.001)


async def eventually(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    with anyio.fail_after(PATIENCE_S):
        for pause_s in pauses():
            if is_so():
                return
            await anyio.sleep(pause_s)


async def until(ask: Callable[[], Awaitable[T]], is_wanted: Callable[[T], bool]) -> T:
    """Ask again until the answer is as wanted, and return it."""
    answers: list[T] = []
    try:
        with anyio.fail_after(PATIENCE_S):
            for pause_s in pauses():
                answers[:] = [await ask()]
                if is_wanted(answers[0]):
                    break
                await anyio.sleep(pause_s)
    except TimeoutError:
        raise AssertionError(f"this is the last answer: {answers!r}") from None
    return answers[0]


def ask_until(ask: Callable[[], T], is_wanted: Callable[[T], bool]) -> T:
    """Ask again until the answer is as wanted, and return it, where no event loop runs."""
    deadline = time.monotonic() + PATIENCE_S
    answer = ask()
    for pause_s in pauses():
        if is_wanted(answer):
            break
        assert time.monotonic() < deadline, f"this is the last answer: {answer!r}"
        time.sleep(pause_s)
        answer = ask()
    return answer


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so, where no event loop runs."""
    ask_until(is_so, bool)


def records(audit: Path) -> list[dict[str, Any]]:
    """Return the records of an audit."""
    return [json.loads(line) for line in audit.read_text().splitlines()]


def run_directories(pid: int) -> list[Path]:
    """Return the directories that a server has made for its tmux servers."""
    return [
        base / name
        for base in supervisor.runtime_directories(os.environ.get("XDG_RUNTIME_DIR", ""))
        if base.is_dir()
        for name in os.listdir(base)  # in a tenth of the time that glob takes, after each test
        if name.startswith(f"tmux-debug-mcp-{pid}-")
    ]


def socket_of(pid: int) -> str:
    """Return the socket of a server's one tmux server."""
    [directory] = run_directories(pid)
    return f"{directory}/tmux"


def own_tmux(*words: str) -> str:
    """Run a command of the one tmux server of this process, as a person would."""
    command = ["tmux", "-S", socket_of(os.getpid()), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def last_pid() -> int:
    """Return the id of the newest process. Source: proc(5), /proc/loadavg."""
    return int(Path("/proc/loadavg").read_text().split()[-1])


def marked(tag: str, before: int = 0) -> Iterator[str]:
    """Yield the processes, other than this one, that have the marker in their environment.

    Those are left out that were there when `before` was the newest, unless ids began anew since.
    """
    oldest = before if last_pid() >= before else 0
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) > oldest]
    for pid in pids:
        environment = processes.read(f"/proc/{pid}/environ").split(b"\0")
        if pid != os.getpid() and tag.encode() in environment and processes.is_alive(pid):
            with contextlib.suppress(OSError):  # it ended meanwhile
                yield Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")


def python(program: str) -> str:
    """Return a shell command that runs a Python program."""
    return shlex.join([sys.executable, "-c", program])


class User:
    """A tmux server of the user's, with sessions of its own."""

    def __init__(self, socket: Path, configuration: Path) -> None:
        self.socket = socket
        self._configuration = configuration

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-u", "-S", str(self.socket), "-f", str(self._configuration), *words]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=self.env
        ).stdout

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "SHELL": "/bin/bash"}

    def state(self) -> list[str]:
        """Return what must not change of all sessions."""
        return [*self.state_of("mine"), *self.state_of("other")]

    def state_of(self, session: str) -> list[str]:
        """Return what must not change: options, hooks, keys, buffers, pipes, and the own panes."""
        words = [
            "show-options -s",
            "show-options -g",
            "show-options -wg",
            "show-hooks -g",
            "list-keys",
            "list-buffers",
        ]
        found = [self.tmux(*word.split()) for word in words]
        mine = (
            "#{session_name} #{window_id} #{window_name} #{pane_id} #{pane_pid} "
            "#{pane_pipe} #{pane_in_mode} #{window_width} #{pane_width} #{pane_height} "
            "#{window_active} #{pane_active} #{session_attached}"
        )
        found += [
            self.tmux("show-options", "-t", f"={session}:"),
            self.tmux("show-options", "-w", "-t", f"={session}:"),
        ]
        return [*found, self.tmux("list-panes", "-s", "-t", f"={session}:", "-F", mine)]


def with_result(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record with how the call came out, as a server writes it."""
    if "error" in fields:
        came: dict[str, Any] = {"result": "failed", "failed": True}
    elif isinstance(fields.get("reason"), str):
        came = Outcome(fields["reason"], fields.get("exit_code"), fields.get("signal")).record
    else:
        came = {"result": "ok", "failed": False}
    return {**came, **fields}
