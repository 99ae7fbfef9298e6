"""Starts a server of ours as a client would, asks it for its tools, and ends it.

It gets directories of its own, so that it neither reads nor changes those of the user.
"""

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from tmux_debug_mcp.linux import files
from tmux_debug_mcp.sockets import servers
from tmux_debug_mcp.tmux import supervisor

from .programs import Programs

_VARIABLES = "TMUX_DEBUG_"
_OWN_NAME = "tmux-debug-mcp: "
_MAX_ANSWER_BYTES = 4 << 20
_READ_BYTES = 1 << 16
# As for the server, which spares directories that may not be locked yet.
_MIN_STALE_AGE_S = 10.0
_MAX_COMPLAINT_CHARACTERS = 300


class ProbeError(Exception):
    """Raised when a server does not do what it was asked for; the text says what it did."""


class LateError(ProbeError):
    """Raised when a server does not answer in time."""

    def __init__(self) -> None:
        super().__init__("It has not answered in time.")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where and how long something may be tried.

    Attributes:
        environ: The environment of the caller.
        programs: What starts programs.
        directory: A private directory for what is started; None where none can be made.
        timeout_s: Seconds that everything may take.
        deadline: When everything must be done, on the clock of time.monotonic().
    """

    environ: Mapping[str, str]
    programs: Programs
    directory: Path | None
    timeout_s: float
    deadline: float

    @property
    def seconds_left(self) -> float:
        """How much time there is; 0 for none."""
        return max(self.deadline - time.monotonic(), 0.0)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a server answered.

    Attributes:
        version: Its version.
        tools: How many tools it has.
        output: What its pane printed, "" where nothing was run.
        elapsed_s: Seconds from its start to the last answer.
    """

    version: str
    tools: int
    output: str
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Probe:
    """A server to start.

    Attributes:
        words: The command line.
        env: Its environment; see `environment`.
        here: Where it is started. There must be a directory.
        command: A command to run in a pane; "" for none.
    """

    words: Sequence[str]
    env: Mapping[str, str]
    here: Surroundings
    command: str = ""

    def answers(self) -> Answers:
        """Start the server, and return what it answers. It has ended then.

        Raises:
            ProbeError: It does not start, ends too early, or answers too late.
        """
        begin = time.monotonic()
        here, directory = self.here, cast("Path", self.here.directory)
        with (directory / f"errors-{os.urandom(4).hex()}").open("w+b") as errors:
            try:
                with here.programs.running(self.words, self.env, directory, errors) as process:
                    version, tools, output = self._ask(_Dialogue(process, here))
                    elapsed_s = time.monotonic() - begin
                    _end(process, here)
            except _EndedError:
                raise ProbeError(_last_words(errors.fileno())) from None
            except (LookupError, TypeError) as error:
                raise ProbeError("It answers something other than MCP.") from error
            except (OSError, ValueError) as error:
                raise ProbeError(f"It can't be started: {error}.") from error
        return Answers(version, tools, output, elapsed_s)

    def _ask(self, dialogue: "_Dialogue") -> tuple[str, int, str]:
        client = {"name": "tmux-debug doctor", "version": "1"}
        greeting = dialogue.ask(
            "initialize", protocolVersion="2024-11-05", capabilities={}, clientInfo=client
        )
        dialogue.tell("notifications/initialized")
        tools = dialogue.ask("tools/list")
        output = ""
        if self.command:
            arguments = {"command": self.command}
            result = dialogue.ask("tools/call", name="tmux_run", arguments=arguments)
            output = str(result["content"][0]["text"])
            if result.get("isError"):
                raise ProbeError(output)
        return str(greeting["serverInfo"]["version"]), len(tools["tools"]), output


def environment(
    environ: Mapping[str, str], directory: Path, added: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of a server that keeps its files in a directory.

    Of our variables it has only the program of tmux: others say where to write, or what for.

    Args:
        environ: The caller's environment.
        directory: The directory, mode 0700.
        added: Variables that a client adds.
    """
    both = {**environ, **(added or {})}
    kept = {
        name: value
        for name, value in both.items()
        if not name.startswith(_VARIABLES) or name == f"{_VARIABLES}TMUX"
    }
    tmux = kept.get(f"{_VARIABLES}TMUX", "")
    if "/" in tmux:  # perhaps relative to the directory of the caller
        kept[f"{_VARIABLES}TMUX"] = os.path.abspath(os.path.expanduser(tmux))
    own = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TMPDIR")
    return kept | dict.fromkeys(own, str(directory)) | {"PYTHONDONTWRITEBYTECODE": "1"}


@contextlib.contextmanager
def sparing_stale_directories(runtime: str) -> Iterator[None]:
    """Keep a server that starts meanwhile from removing what killed servers left.

    Args:
        runtime: The value of $XDG_RUNTIME_DIR, "" if it is not set.
    """
    with contextlib.ExitStack() as stack:
        for directory in stale_servers(runtime):
            with contextlib.suppress(OSError):
                stack.callback(os.close, servers.spare(directory))
        for directory in stale_supervisors(runtime):
            with contextlib.suppress(OSError):
                stack.callback(os.close, files.hold(directory))
        yield


def stale_servers(runtime: str) -> list[str]:
    """Return the directories of killed servers that the next one removes. Arguments: as above."""
    old = [directory for directory in servers.directories(runtime) if _is_old(directory)]
    return [directory for directory in old if not servers.is_held(directory)]


def stale_supervisors(runtime: str) -> list[str]:
    """Return such directories of supervisors. Arguments: as above."""
    bases = supervisor.runtime_directories(runtime)
    paths = [str(path) for base in bases for path in base.glob("tmux-debug-mcp-*-*")]
    return [
        path
        for path in paths
        if servers.is_private(path) and _is_old(path) and files.is_unheld(path)
    ]


def _is_old(directory: str) -> bool:
    """Tell whether a directory is no new one, which its server has yet to lock."""
    try:
        return time.time() - os.lstat(directory).st_mtime > _MIN_STALE_AGE_S
    except OSError:
        return False


class _EndedError(Exception):
    """Raised when a server closes its output."""


class _Dialogue:
    """Requests to a server, and its answers.

    Args:
        process: The server, with pipes.
        here: As for `Probe`.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", here: Surroundings) -> None:
        self._input = cast("IO[bytes]", process.stdin)
        self._output = cast("IO[bytes]", process.stdout).fileno()
        self._here = here
        self._unread = b""
        self._id = 0

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Send a request and return its result.

        Raises:
            ProbeError: The answer is an error, no MCP, or too late.
            _EndedError: The server ends first.
        """
        self._id += 1
        self._send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        while True:
            message = self._message()
            if message.get("id") != self._id or "method" in message:
                continue
            result = message.get("result")
            if not isinstance(result, dict):
                raise ProbeError(f"It answers {method} with an error: {message.get('error')}.")
            return result

    def tell(self, method: str) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method})

    def _send(self, message: object) -> None:
        try:
            self._input.write(json.dumps(message).encode() + b"\n")
            self._input.flush()
        except BrokenPipeError:
            raise _EndedError from None

    def _message(self) -> dict[str, Any]:
        line, _, self._unread = self._line().partition(b"\n")
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            shown = line[:80].decode(errors="replace")
            raise ProbeError(f"It prints something other than MCP: {shown}")
        return message

    def _line(self) -> bytes:
        """Return what is unread, once it has a whole line."""
        while b"\n" not in self._unread:
            poll = select.poll()
            poll.register(self._output, select.POLLIN)
            if not poll.poll(self._here.seconds_left * 1000):
                raise LateError
            data = os.read(self._output, _READ_BYTES)
            if not data:
                raise _EndedError
            self._unread += data
            if len(self._unread) > _MAX_ANSWER_BYTES:
                raise ProbeError(f"It prints more than {_MAX_ANSWER_BYTES >> 20} MiB in a line.")
        return self._unread


def _end(process: "subprocess.Popen[bytes]", here: Surroundings) -> None:
    """Have a server end by the end of its input, as long as there is time."""
    with contextlib.suppress(BrokenPipeError):
        cast("IO[bytes]", process.stdin).close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(here.seconds_left)


def _last_words(errors: int) -> str:
    """Return why a server that has closed its output ended."""
    text = os.pread(errors, _READ_BYTES, 0).decode(errors="replace").strip()
    if text:
        return text.splitlines()[-1].removeprefix(_OWN_NAME)[:_MAX_COMPLAINT_CHARACTERS]
    return "It ended before it answered."
