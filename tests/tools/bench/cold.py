"""Cold calls: what clients make, some time apart, while other programs use the caches.

Each server in turn gets a call; before its next one, all others had theirs, and a process has
walked through 64 MB many times. Servers of others are measured in the same rounds.
"""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from wire import SERVER, Server

from tmux_debug_mcp.linux import processes

from .figures import Figures

ACTIONS = ("create", "send", "kill")
_WALK = "data = bytes(64 << 20)\nwhile True: data.count(1)"
_LINE = "hello"


class Calls:
    """The calls of one server.

    Args:
        server: A server that has listed its tools.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.panes: list[str] = []

    def create(self) -> None:
        """Start `cat` in a new pane."""
        raise NotImplementedError

    def send(self) -> None:
        """Type a line and Enter into the newest pane."""
        raise NotImplementedError

    def kill(self) -> None:
        """End the newest pane."""
        raise NotImplementedError

    def _call(self, tool: str, /, **arguments: object) -> str:
        result = self._server.call_tool(tool, **arguments)
        assert not result.get("isError"), result
        return str(result["content"][0]["text"])


class Ours(Calls):
    """This server."""

    def create(self) -> None:
        """Start it."""
        created = self._call("tmux_create_pane", command="exec cat", timeout_s=0)
        self.panes.append(_found(r"debug-\d+", created))

    def send(self) -> None:
        """Type them in one call."""
        keys = f"{_LINE} Enter"
        self._call("tmux_send_keys", pane_id=self.panes[-1], keys=keys, timeout_s=0)

    def kill(self) -> None:
        """End it."""
        self._call("tmux_kill_pane", pane_id=self.panes.pop())


class Wrapix(Calls):
    """taheris/wrapix, lib/mcp/tmux: Rust, and a process of tmux for each action."""

    def create(self) -> None:
        """Start it."""
        created = self._call("tmux_create_pane", command="exec cat")
        self.panes.append(_found(r"debug-\d+", created))

    def send(self) -> None:
        """Type them in two calls, as it takes keys or text."""
        self._call("tmux_send_keys", pane_id=self.panes[-1], keys=_LINE)
        self._call("tmux_send_keys", pane_id=self.panes[-1], keys="Enter")

    def kill(self) -> None:
        """End it."""
        self._call("tmux_kill_pane", pane_id=self.panes.pop())


class Nickgnd(Calls):
    """nickgnd/tmux-mcp: TypeScript, and a process of tmux for each action. Its panes are shells."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._session = _found(r"\$\d+", self._call("create-session", name="bench"))

    def create(self) -> None:
        """Make a window, and ask for its pane."""
        name = f"new-{len(self.panes)}"  # by which it finds the window that it has made
        window = self._call("create-window", sessionId=self._session, name=name)
        panes = self._call("list-panes", windowId=_found(r"@\d+", window))
        self.panes.append(_found(r"%\d+", panes))

    def send(self) -> None:
        """Type them."""
        self._call("execute-command", paneId=self.panes[-1], command=_LINE, rawMode=True)

    def kill(self) -> None:
        """End it."""
        self._call("kill-pane", paneId=self.panes.pop())


# Servers to measure beside this one. An earlier build of this one shows what a change gains.
PEERS: Mapping[str, type[Calls]] = {"wrapix": Wrapix, "nickgnd": Nickgnd, "before": Ours}
# Those that are built on tmux, too.
TMUX_BASED = ("wrapix", "nickgnd")


class _Subject:
    """A server that is measured, with a tmux server of its own."""

    def __init__(self, name: str, command: Sequence[str], directory: str) -> None:
        self.name = name
        self._env = os.environ | {"TMUX_TMPDIR": directory}
        self._server = Server(self._env, command=command).start()
        self._server.ask("tools/list")
        kind = PEERS.get(name, Ours)
        self.calls = kind(self._server)
        self.calls.create()  # which starts tmux
        tmux = tmux_of(self._server.pid) if kind is Ours else int(self._tmux("#{pid}"))
        self.pids = (self._server.pid, tmux)

    def children_ms(self) -> float:
        """Return the processor time of the server's children that have ended."""
        fields = Path(f"/proc/{self._server.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[13:15])) * 1000 / os.sysconf("SC_CLK_TCK")

    def finish(self) -> None:
        """End it, and its tmux server."""
        self._server.finish()
        self._tmux("", "kill-server")

    def _tmux(self, format_: str, *words: str) -> str:
        command = ["tmux", *(words or ("display-message", "-p", format_))]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=False)
        return done.stdout


def name_of(action: str, subject: str = "") -> str:
    """Return the name of the samples of an action, of this server unless a peer is given."""
    return f"cold {action}" + (f", {subject}" if subject else "")


def measure_cold(
    figures: Figures, rounds: int, gap_s: float, peers: Mapping[str, Sequence[str]]
) -> None:
    """Measure cold calls.

    The kernel counts the processor time of children in steps of 10 ms, so a peer's processes of
    tmux are known as the mean of all rounds.

    Args:
        figures: Gets the samples.
        rounds: How often each call is made.
        gap_s: The time between two calls of a server.
        peers: The commands of other servers, by their names in `PEERS`.
    """
    commands = {"": SERVER, **peers}
    with contextlib.ExitStack() as stack:
        subjects = []
        for name, command in commands.items():
            directory = stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp"))
            subjects.append(_Subject(name, command, directory))
            stack.callback(subjects[-1].finish)
        stack.enter_context(_walking())
        for action in ACTIONS:
            before = [subject.children_ms() for subject in subjects]
            for _ in range(rounds):
                for subject in subjects:
                    time.sleep(gap_s / len(subjects))
                    act: Callable[[], None] = getattr(subject.calls, action)
                    figures.time(name_of(action, subject.name), act, *subject.pids)
            for subject, before_ms in zip(subjects, before, strict=True):
                of_children = (subject.children_ms() - before_ms) / rounds
                cpu = figures.cpu[name_of(action, subject.name)]
                cpu[:] = [own + of_children for own in cpu]


def tmux_of(pid: int) -> int:
    """Return the process id of the tmux server of a server of ours."""
    [supervisor] = processes.children(pid)
    found = map(processes.read_stat, processes.children(supervisor))
    return next(stat.pid for stat in found if stat and stat.comm.startswith("tmux"))


@contextmanager
def _walking() -> Iterator[None]:
    """Have a process walk through 64 MB during the block."""
    walker = subprocess.Popen([sys.executable, "-c", _WALK])
    try:
        yield
    finally:
        walker.kill()
        walker.wait()


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found, text
    return found[0]
