"""libtmux, as a script of an agent uses it."""

import subprocess
import time
from collections.abc import Callable, Sequence

import libtmux

from .tools import (
    COLUMNS,
    END_S,
    LOOK_S,
    ROWS,
    TOGETHER_S,
    Ran,
    Tool,
    awaits_by_modes,
    left_in_session,
    plain,
    run_by_marker,
    until,
)


class Libtmux(Tool):
    """libtmux."""

    title = "libtmux"

    def version(self) -> str:
        """Return the library's own."""
        return f"libtmux {libtmux.__version__}"

    def start(self) -> None:
        """Start a server whose panes stay after their end."""
        self._server = libtmux.Server(socket_path=str(self.home / "tmux.socket"))
        self._server.new_session(session_name="first", environment=self.env)
        self._server.cmd("set-option", "-g", "remain-on-exit", "on")
        self._panes: dict[str, libtmux.Pane] = {}

    def open(self, command: str, name: str = "") -> str:
        """Start it in a session."""
        session = self._server.new_session(
            session_name=name or f"s{time.monotonic_ns()}",
            window_command=command,
            x=COLUMNS,
            y=ROWS,
            environment=self.env,
        )
        pane = session.active_pane
        assert pane
        started = str(session.session_name)
        self._panes[started] = pane
        return started

    def type(self, terminal: str, text: str) -> None:
        """Send it literally."""
        self._panes[terminal].send_keys(text, enter=False, literal=True)

    def press(self, terminal: str, key: str) -> None:
        """Send it by its name."""
        self._panes[terminal].send_keys(key, enter=False)

    def enter(self, terminal: str, *lines: str) -> None:
        """Send them with Enter."""
        for line in lines:
            self._panes[terminal].send_keys(line, enter=True, literal=True)

    def read(self, terminal: str) -> str:
        """Capture the screen and its history, with wrapped lines joined."""
        lines = self._panes[terminal].cmd("capture-pane", "-p", "-J", "-S", "-").stdout
        return "\n".join(lines).rstrip()

    def screen(self, terminal: str) -> str:
        """Capture the screen."""
        return "\n".join(self._panes[terminal].capture_pane()).rstrip()

    def ending(self, terminal: str) -> str:
        """Ask tmux, which keeps how the pane's command ended."""
        time.sleep(LOOK_S)
        line = self._fact(terminal, "#{pane_dead} #{pane_dead_status} #{pane_dead_signal}")
        is_dead, _, how = line.partition(" ")
        return how.strip() if is_dead == "1" else ""

    def together(self, commands: Sequence[str], is_over: Callable[[], bool]) -> str:
        """Pipe what both print into one file, from before they start."""
        log = self.home / "together"
        for command in commands:
            shell = self.open("bash --norc")
            self._panes[shell].cmd("pipe-pane", f"cat >>{log}")
            self.enter(shell, command)
        until(is_over, TOGETHER_S)
        time.sleep(LOOK_S)
        return plain(log.read_text())

    def awaits(self, terminal: str) -> str:
        """Look at the modes of its terminal."""
        stty = ["stty", "-a", "-F", self._fact(terminal, "#{pane_tty}")]
        return awaits_by_modes(
            lambda: subprocess.run(stty, capture_output=True, text=True, check=False).stdout
        )

    def left_by(self, command: str) -> str:
        """Look at the session of the process that tmux has started."""
        terminal = self.open(command)
        until(lambda: bool(self.ending(terminal)), END_S)
        return left_in_session(self._fact(terminal, "#{pane_pid}"))

    def _fact(self, terminal: str, formats: str) -> str:
        [line] = self._panes[terminal].cmd("display-message", "-p", formats).stdout
        return str(line)

    def run(self, command: str, terminal: str = "", timeout_s: float = 10.0) -> Ran:
        """Type it with a marker behind, into a shell."""
        shell = terminal or self.open("bash --norc")
        return run_by_marker(self, command, shell, timeout_s)

    def end(self, terminal: str) -> None:
        """Kill the session."""
        self._server.sessions.get(session_name=terminal).kill()

    def finish(self) -> None:
        """Kill the server."""
        self._server.kill()
