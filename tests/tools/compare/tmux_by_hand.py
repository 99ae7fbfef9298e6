"""Plain tmux in a shell tool: `send-keys`, a pause, `capture-pane`."""

import subprocess
import time
from collections.abc import Callable, Sequence

from .tools import (
    COLUMNS,
    LOOK_S,
    REACT_S,
    ROWS,
    TOGETHER_S,
    Ran,
    Tool,
    awaits_by_modes,
    ending_in_shell,
    plain,
    run_by_marker,
    until,
)


class TmuxByHand(Tool):
    """tmux as an agent uses it that has nothing but a shell tool."""

    title = "tmux by hand"

    def version(self) -> str:
        """Return tmux's own."""
        return self._tmux("-V").strip()

    def open(self, command: str, name: str = "") -> str:
        """Type it into the shell of a new session, so that its end can be read."""
        session = self._shell(name)
        self.enter(session, command)
        time.sleep(REACT_S)
        return session

    def _shell(self, name: str = "") -> str:
        session = name or f"s{time.monotonic_ns()}"
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        self._tmux("new-session", "-d", "-s", session, *size, "bash --norc")
        time.sleep(LOOK_S)
        return session

    def type(self, terminal: str, text: str) -> None:
        """Send it literally, the careful way."""
        self._tmux("send-keys", "-t", terminal, "-l", "--", text)

    def press(self, terminal: str, key: str) -> None:
        """Send it by its name."""
        self._tmux("send-keys", "-t", terminal, key)

    def read(self, terminal: str) -> str:
        """Capture the screen and its history, with wrapped lines joined."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-", "-t", terminal).rstrip()

    def screen(self, terminal: str) -> str:
        """Capture the screen."""
        return self._tmux("capture-pane", "-p", "-t", terminal).rstrip()

    def together(self, commands: Sequence[str], is_over: Callable[[], bool]) -> str:
        """Pipe what both print into one file, from before they start."""
        log = self.home / "together"
        for command in commands:
            session = self._shell()
            self._tmux("pipe-pane", "-t", session, f"cat >>{log}")
            self.enter(session, command)
        until(is_over, TOGETHER_S)
        time.sleep(LOOK_S)
        return plain(log.read_text())

    def awaits(self, terminal: str) -> str:
        """Look at the modes of its terminal."""
        tty = self._tmux("display-message", "-p", "-t", terminal, "#{pane_tty}").strip()
        return awaits_by_modes(lambda: self.run(f"stty -a -F {tty}").output)

    def ending(self, terminal: str) -> str:
        """Ask the shell that started it."""
        return ending_in_shell(self, terminal)

    def run(self, command: str, terminal: str = "", timeout_s: float = 10.0) -> Ran:
        """Use the shell tool itself, or type it with a marker behind."""
        if terminal:
            return run_by_marker(self, command, terminal, timeout_s)
        try:
            done = subprocess.run(
                ["bash", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self.env,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            output = error.stdout or b""
            return Ran(output.decode().rstrip(), None, has_ended=False)
        return Ran(done.stdout.rstrip(), done.returncode)

    def end(self, terminal: str) -> None:
        """Kill the session."""
        self._tmux("kill-session", "-t", terminal)

    def finish(self) -> None:
        """Kill the server."""
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", "compare", *words],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout
