"""People at terminals, who call `tmux-debug`."""

import contextlib
import os
import pty
import re
import shlex
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path

from support import ask_until

_PREFIX = b"\x02"  # C-b


class Person:
    """Somebody at a terminal of 80 columns and 24 rows, who calls a command in a directory."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: str | Path,
        term: str = "xterm",
    ) -> None:
        self._keyboard, terminal = pty.openpty()
        self._terminal = terminal
        self.resizes(80, 24)
        self.tty = os.ttyname(terminal)
        # The leader of a session gets the first terminal that it opens as its own.
        script = f"exec <>{self.tty} >&0 2>&0; exec {shlex.join(command)}"
        self.process = subprocess.Popen(
            ["sh", "-c", script],
            env={**env, "TERM": term},
            cwd=cwd,
            start_new_session=True,
        )
        self._seen = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self._keyboard, 65536):
                self._seen += data

    @property
    def seen(self) -> str:
        """What the terminal got, without control sequences."""
        text = self._seen.decode(errors="replace")
        return re.sub(r"\x1b(?:\[[0-9;?>=]*[a-zA-Z]|[()][0A-Z]|[=>78])", "", text)

    def sees(self, text: str) -> None:
        """Wait until the terminal has got a text."""
        ask_until(lambda: self.seen, lambda seen: text in seen)

    def forgets(self) -> None:
        """Forget what was seen up to now."""
        self._seen = b""

    def types(self, keys: bytes) -> None:
        """Type keys."""
        os.write(self._keyboard, keys)

    def presses(self, key: str) -> None:
        """Press C-b and a key."""
        self.types(_PREFIX + key.encode())

    def resizes(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def leaves(self) -> int:
        """Press C-b d, and return the exit status."""
        self.presses("d")
        return self.process.wait(60)

    def close(self) -> None:
        """End the command, and take the terminal away."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._terminal)
        self._reader.join(20)
        os.close(self._keyboard)
