"""OpenHands' terminal session on `tmux-debug`, with the methods of its TerminalSessionBase.

TerminalTool.create(state, executor=TerminalExecutor(Session(working_dir)))
"""

from collections.abc import Sequence

from openhands.tools.terminal.definition import TerminalAction, TerminalObservation
from openhands.tools.terminal.metadata import CmdOutputMetadata
from shell_session import Outcome, RefusedError, ShellSession

_SOFT_TIMEOUT_S = 30.0
_STILL_RUNS = -1
# What the tool calls keys, where tmux has another word.
_KEYS = {
    "UP": "Up",
    "DOWN": "Down",
    "LEFT": "Left",
    "RIGHT": "Right",
    "HOME": "Home",
    "END": "End",
    "PGUP": "PageUp",
    "PGDN": "PageDown",
    "TAB": "Tab",
    "ESC": "Escape",
    "BS": "BSpace",
    "ENTER": "Enter",
}


class Session:
    """A shell for the tool `terminal`."""

    def __init__(
        self,
        work_dir: str,
        username: str | None = None,
        no_change_timeout_seconds: int | None = None,
        command: Sequence[str] = ("tmux-debug",),
    ) -> None:
        self.work_dir = work_dir
        self.username = username
        self._timeout_s = no_change_timeout_seconds or _SOFT_TIMEOUT_S
        self._session = ShellSession(command=command)
        self._is_over = True

    def initialize(self) -> None:
        """Start the shell."""
        self._session.start(cwd=self.work_dir)

    def execute(self, action: TerminalAction) -> TerminalObservation:
        """Run a command, send input to the one that runs, or wait for it if there is no command."""
        timeout_s = action.timeout or self._timeout_s
        command = action.command
        try:
            if action.is_input and command:
                key = _KEYS.get(command, command)
                is_key = key != command or command.startswith("C-")
                outcome = self._session.send(key if is_key else f"{key}\n", timeout_s=timeout_s)
            elif command.strip():
                outcome = self._session.run(command, timeout_s)
            else:
                outcome = self._session.wait(timeout_s)
        except RefusedError as error:
            return _observation(command, str(error), _STILL_RUNS, is_error=True)
        self._is_over = outcome.is_over
        return _observation(command, _told(outcome), _code(outcome), is_error=not outcome.is_alive)

    def interrupt(self) -> bool:
        """Press C-c; return whether the shell is back."""
        self._is_over = self._session.interrupt().is_over
        return self._is_over

    def is_running(self) -> bool:
        """Tell whether a command runs."""
        return not self._is_over

    def close(self) -> None:
        """End the shell and everything that it started."""
        self._session.close()


def _code(outcome: Outcome) -> int:
    return _STILL_RUNS if outcome.exit_code is None else outcome.exit_code


def _told(outcome: Outcome) -> str:
    """Return the output, with a line on what the program awaits or that the shell has ended."""
    if not outcome.is_alive:
        return f"{outcome.output}\n[The shell has ended. Set reset to start another.]"
    if not outcome.is_over:
        awaits = f"awaits {outcome.awaits}" if outcome.awaits else "is still running"
        return f"{outcome.output}\n[The command {awaits}. Send input, C-c, or an empty command.]"
    return outcome.output


def _observation(command: str, text: str, code: int, *, is_error: bool) -> TerminalObservation:
    return TerminalObservation.from_text(
        text=text,
        command=command,
        exit_code=code,
        metadata=CmdOutputMetadata(exit_code=code),
        is_error=is_error,
    )
