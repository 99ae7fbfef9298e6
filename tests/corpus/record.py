"""Record what a program writes to a terminal, byte for byte.

The program runs in a private tmux of 200 columns and 50 rows, which answers what the program asks
of its terminal. Keys can be typed at it in steps; each step begins once the output has been quiet
for a moment:

    wait=REGEX   wait until the output since the last keys matches
    type=TEXT    type this text
    keys=NAMES   press keys, by the names that tmux gives them: keys=C-a Up Enter
    paste=TEXT   paste this text
    pause=SECONDS

Example: ./record.py bash-history.out 'bash --norc' 'type=echo one' 'keys=Enter Up C-a'
"""

import argparse
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

COLUMNS = 200
ROWS = 50
PATIENCE = 60.0


class Recording:
    """A program in a pane of a tmux of its own, and the file that its output goes to."""

    def __init__(self, command: str, term: str, directory: Path) -> None:
        self._socket = f"corpus-{os.getpid()}"
        self._output = directory / "output"
        self._gate = directory / "gate"
        self._seen = 0
        os.mkfifo(self._gate)
        self._output.touch()
        held = f"read _ < {shlex.quote(str(self._gate))}; {command}"
        # One invocation, for a server without sessions ends. The options come before the pane.
        options = "status off ; set -g history-limit 100000 ; set -g remain-on-exit on ;"
        self._tmux(
            *("start-server", ";", "set", "-g", "default-terminal", term, ";"),
            *("set", "-g", *options.split()),
            *("set", "-g", "remain-on-exit-format", "", ";"),
            *("new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "sh", "-c", held),
        )
        self._tmux("pipe-pane", "-o", f"cat > {shlex.quote(str(self._output))}")
        self._gate.write_text("go\n")

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._socket, "-f", "/dev/null", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def output(self) -> bytes:
        return self._output.read_bytes()

    def screen(self) -> str:
        """Return what the terminal shows, and what has left it."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-")

    def is_over(self) -> bool:
        return self._tmux("display-message", "-p", "#{pane_dead}").strip() == "1"

    def settle(self, quiet: float) -> None:
        """Wait until no output has come for so many seconds."""
        size, since = -1, time.monotonic()
        while time.monotonic() - since < quiet:
            now = self._output.stat().st_size
            if now != size:
                size, since = now, time.monotonic()
            time.sleep(0.02)

    def wait_for(self, pattern: str) -> None:
        self._until(
            lambda: re.search(pattern.encode(), self.output()[self._seen :]) is not None, pattern
        )

    def wait_for_end(self) -> None:
        self._until(self.is_over, "the end")

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                message = f"{what} did not come; the screen shows:\n{self.screen()}"
                raise TimeoutError(message)
            time.sleep(0.05)

    def do(self, step: str) -> None:
        kind, _, value = step.partition("=")
        if kind == "wait":
            self.wait_for(value)
            return
        if kind == "pause":
            time.sleep(float(value))
            return
        self.settle(0.25)
        self._seen = self._output.stat().st_size
        if kind == "type":
            self._tmux("send-keys", "-l", "--", _argument(value))
        elif kind == "keys":
            for key in value.split():
                self._tmux("send-keys", "--", _argument(key))
                self.settle(0.08)
        elif kind == "paste":
            self._tmux("set-buffer", "--", _argument(value), ";", "paste-buffer", "-p")
        else:
            message = f"no such step: {step}"
            raise ValueError(message)

    def close(self) -> None:
        self._tmux("kill-server")


def _argument(value: str) -> str:
    """Return an argument that means this to tmux, to which a last semicolon ends a command."""
    return value[:-1] + "\\;" if value.endswith(";") else value


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("command")
    parser.add_argument("steps", nargs="*")
    parser.add_argument("--term", default="tmux-256color")
    parser.add_argument(
        "--prompt", action="store_true", help="the program does not end, but waits for more keys"
    )
    parser.add_argument(
        "--replace",
        nargs=2,
        action="append",
        default=[],
        metavar=("OLD", "NEW"),
        help="same length",
    )
    parser.add_argument(
        "--screen", type=Path, help="write what the terminal shows at the end to this file"
    )
    options = parser.parse_args()
    if any(len(old.encode()) != len(new.encode()) for old, new in options.replace):
        parser.error("a replacement has another length, which would move what follows it")
    with tempfile.TemporaryDirectory() as directory:
        recording = Recording(options.command, options.term, Path(directory))
        try:
            for step in options.steps:
                recording.do(step)
            if not options.prompt:
                recording.wait_for_end()
            recording.settle(0.6)
            data, screen = recording.output(), recording.screen()
        finally:
            recording.close()
    for old, new in options.replace:
        data, screen = data.replace(old.encode(), new.encode()), screen.replace(old, new)
    options.file.write_bytes(data)
    if options.screen:
        options.screen.write_text(screen)


if __name__ == "__main__":
    main()
