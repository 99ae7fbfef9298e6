"""A shell in a pane of `tmux-debug`, in which a harness runs one command after the other.

The adapters beside this file turn it into what each harness expects. The harness needs only
Python's standard library, and the place where the shell runs only `tmux-debug`: `command` may begin
with `docker exec CONTAINER` or `ssh HOST`.
"""

import json
import re
import subprocess
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TIMED_OUT = 124
# The most that `tmux-debug` gives a command. After that, it interrupts the command.
MAX_S = 3600.0


class RefusedError(Exception):
    """`tmux-debug` refused a call, and says why."""


@dataclass(frozen=True)
class Outcome:
    """How a command stands.

    Attributes:
        output: What it has printed since the last outcome.
        is_over: It has ended.
        exit_code: None while it runs, and if it is unknown.
        awaits: What it awaits, such as `input`, `hidden input` or `keys`; "" for nothing.
        is_alive: The shell is still there.
    """

    output: str
    is_over: bool
    exit_code: int | None = None
    awaits: str = ""
    is_alive: bool = True


class ShellSession:
    """A shell.

    Args:
        name: The pane's name; by default one that no other pane has.
        command: How `tmux-debug` is called.
        shell: The command line of the shell.
    """

    def __init__(
        self,
        name: str = "",
        command: Sequence[str] = ("tmux-debug",),
        shell: str = "bash --norc",
    ) -> None:
        self.name = name or f"shell-{uuid.uuid4().hex[:8]}"
        self._command = list(command)
        self._shell = shell
        self._run: subprocess.Popen[str] | None = None
        self._line = ""
        self._told = ""
        self._cursor = 0

    def start(self, *, cwd: str = "", env: Sequence[str] = ()) -> None:
        """Start the shell. `env` has words NAME=VALUE."""
        where = ["--cwd", cwd] if cwd else []
        variables = [word for one in env for word in ("--env", one)]
        self.call("create", "--name", self.name, *where, *variables, self._shell)

    def run(self, command: str, timeout_s: float) -> Outcome:
        """Run a command, and return how it stands when it has ended or the time is over.

        It keeps running after that time, for at most an hour in all.

        Raises:
            RefusedError: The shell is not at its prompt.
        """
        self._cursor = self.call("capture", "--lines", "1", self.name)[1]["_meta"]["cursor"]
        self._line, self._told = command, ""
        words = ["run", "--json", "--pane", self.name, "--timeout", str(MAX_S), "--", command]
        self._run = subprocess.Popen(
            [*self._command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        return self.wait(timeout_s)

    def wait(self, timeout_s: float) -> Outcome:
        """Wait for the command that runs, and return how it stands."""
        if self._run is None:
            _, result = self.call("wait", "--timeout", str(timeout_s), self.name)
            return self._observed(result)
        try:
            out, error = self._run.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return Outcome(self._news(), is_over=False)
        self._run = None
        result = _result(out, error)
        output = result["content"][0]["text"].removeprefix(self._told)
        return self._outcome(result, output)

    def send(self, *keys: str, timeout_s: float = 1.0) -> Outcome:
        """Type text and press keys, and return what comes of it."""
        for key in keys:
            _, result = self.call("send", "--timeout", str(timeout_s), self.name, "--", key)
        return self.wait(timeout_s) if self._run else self._observed(result)

    def interrupt(self, timeout_s: float = 5.0) -> Outcome:
        """Press C-c, and wait until the shell is back."""
        return self.send("C-c", timeout_s=timeout_s)

    def is_alive(self) -> bool:
        """Tell whether the shell still runs."""
        _, result = self.call("wait", "--timeout", "0", self.name)
        return bool(result["_meta"]["status"] == "running")

    def close(self) -> None:
        """End the shell and everything that it started."""
        self.call("kill", self.name)
        if self._run:
            self._run.communicate()

    def call(self, verb: str, *words: str) -> tuple[int, dict[str, Any]]:
        """Call a verb; return its exit status and its result.

        Raises:
            RefusedError: It was refused.
        """
        done = subprocess.run(
            [*self._command, verb, "--json", *words], capture_output=True, text=True, check=False
        )
        return done.returncode, _result(done.stdout, done.stderr)

    def _news(self) -> str:
        """Return what the command that runs has printed since the last outcome."""
        _, result = self.call("capture", "--since", str(self._cursor), self.name)
        line, _, output = str(result["content"][0]["text"]).partition("\n")
        if line != " ⏎ ".join(self._line.split("\n")):  # the command has not begun
            return ""
        news = output.removeprefix(self._told)
        self._told = output
        return news

    def _observed(self, result: dict[str, Any]) -> Outcome:
        """Return how a command stands that goes on after its call, as when it asked something."""
        *_, shown, status = (block["text"] for block in result["content"])
        ended = re.search(r"run ended with code (\d+)", status)
        if ended:
            return Outcome(shown, is_over=True, exit_code=int(ended[1]))
        return self._outcome(result, shown)

    def _outcome(self, result: dict[str, Any], output: str) -> Outcome:
        facts = result["_meta"]
        code, awaits = facts.get("exit_code"), facts.get("awaits", "")
        is_alive = facts["status"] == "running"
        # After C-c, the shell may be back without telling an exit code.
        is_back = awaits == "keys" and facts.get("foreground") == self._shell.split()[0]
        is_over = code is not None or is_back or not is_alive
        return Outcome(output, is_over, code, awaits, is_alive)


def _result(out: str, error: str) -> dict[str, Any]:
    if not out:
        raise RefusedError(error.strip())
    result: dict[str, Any] = json.loads(out)
    if result["isError"]:
        raise RefusedError(result["content"][0]["text"])
    return result
