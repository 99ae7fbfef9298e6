"""A benchmark harness's terminal on `tmux-debug`: keys with and without waiting, output, captures.

The methods are those that harnesses such as Terminal-Bench ask of a terminal. Nothing but the
standard library is needed where the harness runs, and nothing but `tmux-debug` where the terminal
is: `command` may begin with `docker exec CONTAINER` or `ssh HOST`.
"""

import json
import subprocess
from collections.abc import Sequence
from typing import Any

TIMED_OUT = 124


class Terminal:
    """A shell in a pane.

    Args:
        name: The name of the pane.
        command: How `tmux-debug` is called.
        shell: The command line of the shell.
    """

    def __init__(
        self, name: str, command: Sequence[str] = ("tmux-debug",), shell: str = "bash --norc"
    ) -> None:
        self._name = name
        self._command = list(command)
        self._cursor = 0
        self._call("create", "--name", name, shell)

    def send_keys(
        self, keys: str | Sequence[str], *, block: bool = False, max_timeout_s: float = 180.0
    ) -> None:
        """Type text and press keys; wait until the program awaits something again if `block`.

        Raises:
            TimeoutError: It does not within the time.
        """
        words = [keys] if isinstance(keys, str) else list(keys)
        for word in words:  # in one call, each would wait for the program, which `0` forbids
            self._call("send", "--timeout", "0", self._name, "--", word)
        if block:
            done, _ = self._call("wait", "--timeout", str(max_timeout_s), self._name)
            if done == TIMED_OUT:
                raise TimeoutError(f"{words} took more than {max_timeout_s} s")

    def run(self, command: str, max_timeout_s: float = 180.0) -> tuple[int, str]:
        """Run a command in the shell; return its exit code and its output."""
        status, result = self._call(
            "run", "--pane", self._name, "--timeout", str(max_timeout_s), "--", command
        )
        return status, result["content"][0]["text"]

    def get_incremental_output(self) -> str:
        """Return what was printed since the last call."""
        _, result = self._call("capture", "--since", str(self._cursor), self._name)
        self._cursor = result["_meta"]["cursor"]
        text: str = result["content"][0]["text"]
        return text

    def capture_pane(self, *, capture_entire: bool = False) -> str:
        """Return what the screen shows, or with `capture_entire` the last 1,000 lines."""
        lines = ["--lines", "1000"] if capture_entire else ["--lines", "50"]
        _, result = self._call("capture", *lines, self._name)
        text: str = result["content"][0]["text"]
        return text

    def is_session_alive(self) -> bool:
        """Tell whether the shell still runs."""
        _, result = self._call("wait", "--timeout", "0", self._name)
        return bool(result["_meta"]["status"] == "running")

    def close(self) -> None:
        """End the shell and everything that it started."""
        self._call("kill", self._name)

    def _call(self, verb: str, *words: str) -> tuple[int, dict[str, Any]]:
        """Call a verb; return its exit status and its result.

        Raises:
            RuntimeError: It was refused.
        """
        done = subprocess.run(
            [*self._command, verb, "--json", *words], capture_output=True, text=True, check=False
        )
        if not done.stdout:
            raise RuntimeError(done.stderr)
        result: dict[str, Any] = json.loads(done.stdout)
        if result["isError"]:
            raise RuntimeError(result["content"][0]["text"])
        return done.returncode, result
