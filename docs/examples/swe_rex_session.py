"""SWE-ReX' bash session on `tmux-debug`.

swerex.runtime.local.BashSession = Session
"""

import asyncio
import contextlib
import math
from typing import Any

from shell_session import MAX_S, Outcome, RefusedError, ShellSession
from swerex.exceptions import (
    CommandTimeoutError,
    NoExitCodeError,
    NonZeroExitCodeError,
    SessionNotInitializedError,
)
from swerex.runtime.abstract import (
    BashAction,
    BashInterruptAction,
    BashObservation,
    CloseBashSessionResponse,
    CreateBashSessionRequest,
    CreateBashSessionResponse,
)
from swerex.runtime.local import Session as BaseSession

# How long an interactive program has to answer.
_ANSWER_S = 1.0


class Session(BaseSession):
    """A shell for LocalRuntime."""

    def __init__(self, request: CreateBashSessionRequest, **_: Any) -> None:  # noqa: ANN401
        self.request = request
        self._session: ShellSession | None = None

    async def start(self) -> CreateBashSessionResponse:
        """Start the shell, and have it read the files of the request."""
        self._session = ShellSession()
        await asyncio.to_thread(self._session.start)
        output = ""
        for path in self.request.startup_source:
            done = await asyncio.to_thread(self._session.run, f". {path}", MAX_S)
            output += done.output
        return CreateBashSessionResponse(output=output)

    async def run(self, action: BashAction | BashInterruptAction) -> BashObservation:
        """Run a command, answer the program that runs, or interrupt it.

        Raises:
            CommandTimeoutError: The command still runs; the message contains its output so far.
            NonZeroExitCodeError: Its exit code is not 0, and was to be checked.
            NoExitCodeError: It has none, as when the shell has ended or awaits input.
        """
        if self._session is None:
            raise SessionNotInitializedError("The session is not started.")
        if isinstance(action, BashInterruptAction):
            outcome = await asyncio.to_thread(self._session.interrupt)
            return BashObservation(output=outcome.output, exit_code=outcome.exit_code)
        if action.is_interactive_command or action.is_interactive_quit:
            outcome = await asyncio.to_thread(self._typed, self._session, action)
            return BashObservation(output=outcome.output, exit_code=0)
        limit = math.inf if action.timeout is None else action.timeout
        try:
            outcome = await asyncio.to_thread(self._session.run, action.command, min(limit, MAX_S))
        except RefusedError as error:
            raise NoExitCodeError(str(error)) from error
        return _checked(action, outcome)

    async def close(self) -> CloseBashSessionResponse:
        """End the shell and everything that it started."""
        if self._session:
            with contextlib.suppress(RefusedError):
                await asyncio.to_thread(self._session.close)
            self._session = None
        return CloseBashSessionResponse()

    def _typed(self, session: ShellSession, action: BashAction) -> Outcome:
        return session.send(f"{action.command}\n", timeout_s=action.timeout or _ANSWER_S)


def _checked(action: BashAction, outcome: Outcome) -> BashObservation:
    if not outcome.is_over and not outcome.awaits:
        raise CommandTimeoutError(
            f"'{action.command}' took more than {action.timeout} s. Output so far:\n"
            f"{outcome.output}"
        )
    why = ""
    if not outcome.is_alive:
        why = "The shell has ended."
    elif not outcome.is_over:
        why = f"The command awaits {outcome.awaits}."
    if action.check == "raise":
        if why:
            raise NoExitCodeError(f"{why} Output: {outcome.output}")
        if outcome.exit_code:
            raise NonZeroExitCodeError(
                f"'{action.command}' ended with {outcome.exit_code}. {action.error_msg}\n"
                f"Output: {outcome.output}"
            )
    code = None if action.check == "ignore" else outcome.exit_code
    return BashObservation(output=outcome.output, exit_code=code, failure_reason=why)
