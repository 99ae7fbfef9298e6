"""`wait --follow`: a line for each thing that happens in panes, for shells in the background.

However fast a pane prints, it gets 10 lines a second at most. A pane that prints faster than it can
be followed is followed from where it is now, and the next line says what was passed over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from tmux_debug_mcp.errors import ArgumentError, CursorError, ToolError
from tmux_debug_mcp.logs.matching import Matcher
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.waiting.conditions import Conditions
from tmux_debug_mcp.panes.waiting.observations import Observation, WaitReason
from tmux_debug_mcp.panes.waiting.origins import since_cursor, since_last_keys
from tmux_debug_mcp.panes.waiting.wait import wait
from tmux_debug_mcp.sockets.listener import Caller
from tmux_debug_mcp.tools import debug_arguments
from tmux_debug_mcp.tools.arguments import Parser
from tmux_debug_mcp.tools.records import Call, Records
from tmux_debug_mcp.tools.toolset import Answer

from .answers import DONE, OTHERWISE, REFUSED, TIMED_OUT, Output, in_verbs
from .parsing import Request
from .registry import VERBS

# The time between two lines about one pane.
_INTERVAL_S = 0.1
# A pane that is further ahead is followed from this far behind its end.
_MAX_BEHIND_BYTES = 1 << 16
# One wait; another one follows it.
_WAIT_S = 3600.0
_MAX_LINE_CHARACTERS = 500
# Why it ended, for the record.
_REASONS = {
    DONE: "done",
    OTHERWISE: WaitReason.STOPPED,
    TIMED_OUT: WaitReason.TIMED_OUT,
}


@dataclass(frozen=True, slots=True)
class Following:
    """What is followed.

    Attributes:
        panes: The panes.
        pattern: A regular expression for lines to be told of; None for none.
        stop_pattern: Another one, which ends it.
        since: The cursor to begin at; None for the last keys.
        timeout_s: The time for all; None for no end.
    """

    panes: Sequence[Pane]
    pattern: str | None
    stop_pattern: str | None
    since: int | None
    timeout_s: float | None


class Followings:
    """Answers `wait --follow`.

    Args:
        engine: The engine.
        records: Puts on record what is followed.
    """

    def __init__(self, engine: Engine, records: Records) -> None:
        self._engine = engine
        self._records = records

    async def answer(self, caller: Caller, request: Request, program: str) -> Output:
        """Send events until there are no more; return how that ended.

        Args:
            caller: Who gets them.
            request: What is asked for.
            program: Who asks, for the record.

        Raises:
            CallerGoneError: The caller is gone.
        """
        status = DONE

        async def follow_panes() -> Answer:
            nonlocal status
            status = await follow(caller, await self._following(request.arguments))
            return Answer([], outcome={"reason": _REASONS[status]})

        call = Call(request.tool, {**request.arguments, "follow": True}, program)
        try:
            await self._records.answered(call, follow_panes)
        except ToolError as error:
            return Output("", f"tmux-debug: {in_verbs(str(error))}\n", REFUSED)
        return Output("", "", status)

    async def _following(self, arguments: Mapping[str, Any]) -> Following:
        """Return what arguments of `wait` ask to follow.

        Raises:
            ArgumentError: One is out of range, or they don't fit together.
            CursorError: The cursor is beyond the log's end.
            PaneNotFoundError: There is no such pane.
        """
        given = Parser(VERBS["wait"].tool, debug_arguments.Wait).parse(arguments)
        names = given.pane_id
        if isinstance(names, str):
            names = [names]
        if given.since is not None and len(names) > 1:
            raise ArgumentError("--since is a cursor of one pane. Give one pane, or leave it out.")
        if given.idle_s is not None:
            raise ArgumentError("--idle is for a single wait. Leave it out, or leave out --follow.")
        panes = [await self._engine.find(name) for name in dict.fromkeys(names)]
        for pane in panes:
            if given.since is not None and given.since > pane.log.size:
                raise CursorError(given.since, pane.log.size)
        timeout_s = given.timeout_s if "timeout_s" in arguments else None
        return Following(panes, given.pattern, given.stop_pattern, given.since, timeout_s)


async def follow(caller: Caller, following: Following) -> int:
    """Send a line for each event until all panes have ended; return the exit status.

    Raises:
        ArgumentError: A pattern can't be used.
        CallerGoneError: The caller is gone.
    """
    matcher = Matcher(following.pattern, following.stop_pattern)
    statuses: list[int] = []
    errors: list[ToolError] = []

    async def follow_one(pane: Pane, scope: anyio.CancelScope) -> None:
        try:
            status = await _Follower(caller, pane, following, matcher).follow()
        except ToolError as error:  # raised below, since the task group would wrap it
            errors.append(error)
            scope.cancel()
            return
        statuses.append(status)
        if status != DONE:
            scope.cancel()

    with anyio.move_on_after(following.timeout_s) as timing:
        async with anyio.create_task_group() as tasks:
            for pane in following.panes:
                tasks.start_soon(follow_one, pane, tasks.cancel_scope)
    if errors:
        raise errors[0]
    if timing.cancelled_caught:
        return TIMED_OUT
    return max(statuses)


class _Follower:
    """Follows one pane."""

    def __init__(self, caller: Caller, pane: Pane, following: Following, matcher: Matcher) -> None:
        self._caller = caller
        self._pane = pane
        self._following = following
        self._matcher = matcher
        self._origin = since_last_keys(pane)
        if following.since is not None:
            self._origin = since_cursor(pane, following.since)
        self._passed_bytes = 0
        self._told_at = 0.0
        self._input_at = -1  # the cursor where it was last told that something is awaited

    async def follow(self) -> int:
        """Send the pane's events until it has ended or `stop_pattern` matches."""
        while True:
            size = self._pane.log.size
            observation = await self._next()
            if observation.reason is WaitReason.TIMED_OUT:
                continue
            if observation.reason is WaitReason.INPUT:
                await self._tell_of_input(observation)
                self._go_on_from(observation.end)
                await self._has_grown(size)
                continue
            await self._tell(observation)
            if observation.reason is WaitReason.EXITED:
                return DONE
            if observation.reason is WaitReason.STOPPED:
                return OTHERWISE
            self._go_on_from(observation.end)

    async def _next(self) -> Observation:
        """Return what happens next."""
        conditions = Conditions(
            self._following.pattern,
            self._following.stop_pattern,
            is_for_input=True,
            timeout_s=_WAIT_S,
        )
        [observation] = await wait([self._pane], conditions, lambda _pane: self._origin)
        return observation

    async def _has_grown(self, size: int) -> None:
        """Wait until the log is longer than it was, or the program has ended."""
        async with self._pane.subscribe() as subscription:
            while self._pane.log.size == size and not await self._pane.ending():
                await subscription.wait(_WAIT_S)

    async def _tell_of_input(self, observation: Observation) -> None:
        """Tell once that something is awaited, until the program has printed more."""
        if observation.end == self._input_at:
            return
        self._input_at = observation.end
        await self._tell(observation)

    async def _tell(self, observation: Observation) -> None:
        await anyio.sleep_until(self._told_at + _INTERVAL_S)
        self._told_at = anyio.current_time()
        await self._caller.send({"out": f"{self._line(observation)}\n"})
        self._passed_bytes = 0

    def _line(self, observation: Observation) -> str:
        pane = self._pane
        name = str(pane.id)
        if pane.name != pane.id:
            name += f" {pane.name}"
        passed = self._passed_bytes + observation.unseen_bytes
        remark = f"; {passed} bytes were passed over" if passed else ""
        match observation.reason:
            case WaitReason.MATCHED | WaitReason.STOPPED:
                line = self._matching_line(observation)[:_MAX_LINE_CHARACTERS]
                return f"[{name} {observation.reason} at {observation.end}{remark}] {line}"
            case WaitReason.INPUT:
                awaits = observation.state.awaits
                return f"[{name} awaits {awaits.value if awaits else 'input'}{remark}]"
            case _:
                return f"[{name} {observation.state}{remark}]"

    def _matching_line(self, observation: Observation) -> str:
        """Return the line that matches, which is the last that does."""
        lines = observation.excerpt.text.split("\n")
        matching = [line for line in lines if self._matcher.first([line])]
        return matching[-1] if matching else lines[-1]

    def _go_on_from(self, cursor: int) -> None:
        newest = self._pane.log.size - _MAX_BEHIND_BYTES
        self._passed_bytes += max(0, newest - cursor)
        self._origin = since_cursor(self._pane, max(cursor, newest))
