"""The socket of a server: who may connect, and what a caller says first.

Every server has one, so that `tmux-debug` can reach its panes. Only this user can use the directory
and the socket, and we also ask the kernel for the caller's user. The protocol is in `connection`.
"""

import contextlib
import json
import math
import os
import secrets
import select
import socket
import sys
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
import orjson

from tmux_debug_mcp.errors import StartError, first_of
from tmux_debug_mcp.linux import files, processes
from tmux_debug_mcp.vt.printable import plain_name

from . import servers
from .connection import Connection, ServerGoneError, peer_of

# So many callers may be about to say what they want, or have just said it; and so many may wait.
MAX_CONNECTIONS = 64
# A caller whose call takes longer waits.
WAITS_AFTER_S = 1.0
_TOO_MANY = f"The server already has {MAX_CONNECTIONS} callers. Try again in a moment."
_TOO_MANY_WAIT = (
    f"More than {MAX_CONNECTIONS} callers wait for this server, most of them from where this one "
    "was called. It waits no longer."
)
# The exit status of callers that are refused.
_REFUSED = 125
# As for an MCP message.
_MAX_LINE_BYTES = 8 << 20
_RECEIVE_BYTES = 1 << 16
_BACKLOG = 128
_MAX_FDS = 2
# The socket's name while the server looks one last time whether somebody waits.
_WITHDRAWN = "socket.withdrawn"
# In this time, another call may close files.
_NO_FILES_S = 0.1
# By then an ending server is gone, and a caller that looked has let go of a killed one's directory.
_CLAIM_S = 10.0
# A server locks its directory within a millisecond of making it.
_MIN_ABANDONED_AGE_S = 10.0
_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a caller says first, a JSON object, and the file descriptors that came with it."""

    wish: Mapping[str, Any]
    fds: list[int]

    def close(self) -> None:
        """Close the file descriptors, which the receiver owns."""
        _close(self.fds)


class CallerGoneError(Exception):
    """Raised when a caller has closed the connection, or breaks the protocol."""


class Caller:
    """The other side of a connection, whose socket it owns.

    Its methods raise CallerGoneError when it has closed the connection.

    Attributes:
        pid: Its process id, 0 if that is in a pid namespace which we can't see.
        uid: Its user.
        parent_pid: The process that called `tmux-debug`, such as a shell; 0 if it is not known.
        is_in_pane: Whether it may run in one of our panes.
    """

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._socket.settimeout(0)
        self.pid, self.uid = peer_of(connected)
        # Found out now: once it has ended, another process may get its id.
        self.parent_pid = servers.parent(self.pid)
        self.is_in_pane = _may_be_in_pane(self.pid)
        self._unread = bytearray()

    @property
    def script(self) -> str:
        """What identifies the shell or script that called `tmux-debug`; "" if it is not known.

        A shell's subshells, as in `$(…)`, pipelines and loops, count as the shell.
        """
        process = processes.read_stat(self.parent_pid)
        while process and process.is_fork:
            parent = processes.read_stat(process.ppid)
            if parent is None or parent.comm != process.comm:
                break
            process = parent
        return f"{process.pid} {process.starttime}" if process else ""

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    async def greeting(self, timeout_s: float) -> Greeting:
        """Return what it says first.

        Raises:
            CallerGoneError: It says nothing in time, or something other than a JSON object; or it
                is gone since, as when we were stopped for too long.
        """
        fds: list[int] = []
        try:
            with anyio.fail_after(timeout_s):
                wish = await self._message(fds)
            self._check_there()
        except BaseException as error:
            _close(fds)
            if isinstance(error, TimeoutError):
                raise CallerGoneError from error
            raise
        return Greeting(wish, fds)

    async def message(self) -> Mapping[str, Any]:
        """Return the next message, which may take as long as the caller wants.

        Raises:
            CallerGoneError: It has closed the connection, or says something other than a JSON
                object.
        """
        fds: list[int] = []
        try:
            return await self._message(fds)
        finally:
            _close(fds)

    def _check_there(self) -> None:
        """Raise CallerGoneError if it is gone. One that has only hung up reads on."""
        poll = select.poll()
        poll.register(self._socket, 0)  # which means POLLHUP
        if poll.poll(0):
            raise CallerGoneError

    async def wait_until_gone(self) -> None:
        """Wait until it has closed the connection. What it says until then is dropped."""
        fds: list[int] = []
        with contextlib.suppress(CallerGoneError):
            while await self._receive(fds):
                _close(fds)
                await anyio.lowlevel.checkpoint()  # the next piece may be there already
        _close(fds)

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; wait while the caller reads nothing."""
        data = memoryview(orjson.dumps(message) + b"\n")
        while data:
            try:
                data = data[self._socket.send(data) :]
            except BlockingIOError:
                await anyio.wait_writable(self._socket)
            except ConnectionError as error:
                raise CallerGoneError from error

    def send_away(self, sentence: str) -> None:
        """Say why it is not served, if the socket has room for that, and close the connection."""
        answer = {"err": f"tmux-debug: {sentence}\n", "exit": _REFUSED}
        with contextlib.suppress(OSError):
            self._socket.send(orjson.dumps(answer) + b"\n")
        self.close()

    async def _message(self, fds: list[int]) -> Mapping[str, Any]:
        end = self._unread.find(b"\n")
        while end < 0:
            data = await self._receive(fds) if len(self._unread) <= _MAX_LINE_BYTES else b""
            if not data:
                raise CallerGoneError
            searched = len(self._unread)
            self._unread += data
            end = self._unread.find(b"\n", searched)
            if end < 0:
                await anyio.lowlevel.checkpoint()  # the next piece may be there already
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        try:
            message = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise CallerGoneError from error
        if not isinstance(message, dict):
            raise CallerGoneError
        return message

    async def _receive(self, fds: list[int]) -> bytes:
        while True:
            try:
                data, received, _, _ = socket.recv_fds(
                    self._socket, _RECEIVE_BYTES, _MAX_FDS, socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                await anyio.wait_readable(self._socket)
                continue
            except ConnectionError as error:
                raise CallerGoneError from error
            fds += received
            if len(fds) > _MAX_FDS or any(map(self._leads_to_us, received)):
                raise CallerGoneError
            return data

    def _leads_to_us(self, fd: int) -> bool:
        """Return whether a descriptor is the other side of a connection to our socket.

        If we held that too, we would not see that the caller has closed it.
        """
        try:
            other = socket.socket(fileno=fd)
        except OSError:  # it is not a socket
            return False
        try:
            return bool(other.getpeername() == self._socket.getsockname())
        except OSError:  # it is not connected
            return False
        finally:
            other.detach()


def _may_be_in_pane(pid: int) -> bool:
    """Return whether a process may run in one of our panes.

    What we start descends from us, unless it has another process start it, and carries the tag of
    its pane, unless it drops that. One that has hidden an ancestor is not known to run elsewhere:
    the ancestor has ended, or there are too many. We see all processes in our panes, so one that
    we can't see, whose pid is 0, is in none.
    """
    found = servers.ancestors(pid)
    if found[-1] != 0 or os.getpid() in found:
        return True
    return any(f"-{os.getpid()}-" in processes.tag(pid) for pid in found)


def environment_in(wish: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment that a caller sends.

    Raises:
        CallerGoneError: It sends none.
    """
    sent = wish.get("environment")
    if not isinstance(sent, dict):
        raise CallerGoneError
    try:
        return {
            os.fsdecode(name.encode("latin-1")): os.fsdecode(value.encode("latin-1"))
            for name, value in sent.items()
        }
    except (AttributeError, UnicodeEncodeError) as error:
        raise CallerGoneError from error


def program_of(pid: int) -> str:
    """Return the name and the id of a process, for the record: `claude (pid 4711)`."""
    stat = processes.read_stat(pid)
    if stat is None:
        return "an unknown process"
    return f"{plain_name(stat.comm)} (pid {pid})"


async def cancel_when_gone(caller: Caller, scope: anyio.CancelScope) -> None:
    """Cancel what is done for a caller once it has closed its connection."""
    await caller.wait_until_gone()
    scope.cancel()


def _close(fds: list[int]) -> None:
    while fds:
        os.close(fds.pop())


Answer = Callable[[Caller, Greeting], Awaitable[None]]


class _Visit:
    """A caller that is served, until it has its answer or gives way to another one.

    Attributes:
        scope: Cancelled when it gives way.
        asked_at: When it had said what it wants, infinity before that.
    """

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.scope = anyio.CancelScope()
        self.asked_at = math.inf

    @property
    def origin(self) -> int:
        """Where it was called: from a shell or script, by pid, or from our panes, 0."""
        return 0 if self.caller.is_in_pane else self.caller.parent_pid


class Listener:
    """The directory of a server, with its socket. Creating one makes both."""

    greeting_s = 30.0  # A caller says at once what it wants, if the machine lets it.

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._visits: list[_Visit] = []  # the oldest first
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(0)
        os.mkdir(directory, 0o700)
        try:
            path = f"{directory}/{servers.SOCKET}"
            self._socket.bind(path)
            os.chmod(path, 0o600)
            self._socket.listen(_BACKLOG)
            # Last, since a locked directory means that the server listens.
            self._lock = servers.hold(directory)
        except OSError:
            self._socket.close()
            files.remove(directory)
            raise

    def describe(self, facts: Mapping[str, object]) -> None:
        """Write what tells this server apart, for callers to choose by; see `servers.Server`.

        Readers see all of it, or the previous content.
        """
        new = f"{servers.FACTS}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with open(os.open(new, flags, 0o600, dir_fd=self._lock), "wb", 0) as file:
            file.write(json.dumps(facts).encode())
        self._rename(new, servers.FACTS)

    def withdraw(self) -> bool:
        """Withdraw the socket; return False, and keep serving, if a caller is connected or waits.

        The second look misses nobody: by then, the socket has no name to connect to.
        """
        if self._visits:
            return False
        with contextlib.suppress(OSError):  # somebody has removed it
            self._rename(servers.SOCKET, _WITHDRAWN)
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if not poll.poll(0):
            return True
        with contextlib.suppress(OSError):
            self._rename(_WITHDRAWN, servers.SOCKET)
        return False

    def _rename(self, name: str, new: str) -> None:
        """Rename a file in our directory, even if another directory has taken its path."""
        os.rename(name, new, src_dir_fd=self._lock, dst_dir_fd=self._lock)

    def rename(self, directory: str) -> None:
        """Move the directory. It may replace an empty one."""
        os.rename(self.directory, directory)
        self.directory = directory

    def close(self) -> None:
        """Close the socket and remove the directory; one that has taken its place stays."""
        self._socket.close()
        files.remove_locked(self.directory, self._lock)
        os.close(self._lock)

    async def serve(self, answer: Answer) -> None:
        """Serve callers until cancelled, each in a separate task.

        `answer` gets what the caller says first. When it returns, the connection is closed.
        """
        async with anyio.create_task_group() as tasks:
            while True:
                caller = await self._accept()
                if caller.uid != os.geteuid():
                    caller.close()
                    continue
                if not self._make_room():
                    caller.send_away(_TOO_MANY)
                    continue
                visit = _Visit(caller)
                self._visits.append(visit)
                tasks.start_soon(self._serve_one, visit, answer)

    def _make_room(self) -> bool:
        """Make room for one more caller; return whether there is room.

        The oldest that has not said what it wants gives way. Those that wait don't keep anybody
        out: if there are too many of them, the newest from where most were called gives way.
        """
        visits = [visit for visit in self._visits if not visit.scope.cancel_called]
        waits_since = anyio.current_time() - WAITS_AFTER_S
        silent = [visit for visit in visits if visit.asked_at == math.inf]
        waiting = [visit for visit in visits if visit.asked_at <= waits_since]
        while len(waiting) > MAX_CONNECTIONS:
            counts = Counter(visit.origin for visit in waiting)
            newest = max(waiting, key=lambda visit: (counts[visit.origin], visit.asked_at))
            newest.scope.cancel()
            waiting.remove(newest)
        if len(visits) - len(waiting) < MAX_CONNECTIONS:
            return True
        if silent:
            silent[0].scope.cancel()
        return bool(silent)

    async def _serve_one(self, visit: _Visit, answer: Answer) -> None:
        caller = visit.caller
        try:
            with visit.scope:
                greeting = await caller.greeting(self.greeting_s)
                visit.asked_at = anyio.current_time()
                try:
                    await answer(caller, greeting)
                finally:
                    greeting.close()
            if visit.scope.cancelled_caught and visit.asked_at < math.inf:
                caller.send_away(_TOO_MANY_WAIT)
        except* CallerGoneError:  # also out of a task group
            pass
        except* Exception as error:  # noqa: BLE001  it ends this connection and no other
            traceback.print_exc(file=sys.stderr)
            caller.send_away(
                f"The server could not do this: {first_of(error)!r}. It keeps running."
            )
        finally:
            self._visits.remove(visit)
            caller.close()

    async def _accept(self) -> Caller:
        while True:
            await anyio.wait_readable(self._socket)
            try:
                connected, _ = self._socket.accept()
            except (BlockingIOError, ConnectionAbortedError):
                continue
            except OSError:  # out of files, or out of memory
                await anyio.sleep(_NO_FILES_S)
                continue
            return Caller(connected)


def claim(directory: str) -> Listener | None:
    """Make the directory of a detached server, with its socket.

    It is made under another name and then moved, so whoever finds it finds a server that listens or
    has ended. Of several processes that claim it at once, one succeeds.

    Return None if another server of ours listens there.

    Raises:
        StartError: The directory can't be made.
    """
    try:
        # From this name, `servers.running` finds the later one. A socket's path has 107 bytes.
        listener = Listener(f"{directory}-{secrets.token_hex(3)}")
    except OSError as error:
        raise StartError(
            f"The socket's directory {directory} can't be created: {error}."
        ) from error
    deadline = time.monotonic() + _CLAIM_S
    with contextlib.ExitStack() as undo:
        undo.callback(listener.close)
        while True:
            try:
                listener.rename(directory)
            except OSError as error:
                if _is_served(directory):
                    return None
                _check_owner(directory)
                if time.monotonic() > deadline:
                    raise StartError(
                        f"The socket's directory '{directory}' can't be created "
                        f"({error.strerror}). Remove it, or set XDG_RUNTIME_DIR to a directory of "
                        "your own."
                    ) from error
                files.remove_unheld(directory)  # of a server that was killed
                time.sleep(_POLL_S)
            else:
                undo.pop_all()
                return listener


def _is_served(directory: str) -> bool:
    """Return whether a server of ours listens in a directory."""
    try:
        Connection(f"{directory}/{servers.SOCKET}").close()
    except ServerGoneError:
        return False
    return True


def _check_owner(directory: str) -> None:
    """Raise StartError if a directory is another user's."""
    with contextlib.suppress(FileNotFoundError):
        if os.lstat(directory).st_uid != os.geteuid():
            raise StartError(
                f"The socket's directory '{directory}' belongs to another user. Set "
                "XDG_RUNTIME_DIR to a directory of your own, with mode 0700."
            )


def remove_killed(runtime: str) -> None:
    """Remove the directories of servers that were killed, unless somebody holds them."""
    for directory in servers.directories(runtime):
        with contextlib.suppress(OSError):
            if time.time() - os.lstat(directory).st_mtime > _MIN_ABANDONED_AGE_S:
                files.remove_unheld(directory)


def new_directory(base: str) -> str:
    """Return an unused path in a directory, for the directory of a server."""
    return f"{base}/{servers.PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
