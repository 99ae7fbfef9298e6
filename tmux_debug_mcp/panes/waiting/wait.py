"""Waiting for what panes print or do."""

from collections.abc import Callable, Sequence
from functools import partial

import anyio

from tmux_debug_mcp.errors import PaneLostError, ToolError
from tmux_debug_mcp.logs.matching import Matcher
from tmux_debug_mcp.panes.pane import Pane

from .conditions import Conditions
from .observations import Observation, WaitReason
from .origins import Origin
from .watching import Watch


async def wait(
    panes: Sequence[Pane], conditions: Conditions, origin_of: Callable[[Pane], Origin]
) -> list[Observation]:
    """Wait for the first thing that happens in any of the panes.

    Args:
        panes: The panes, at least one.
        conditions: What to wait for in each.
        origin_of: Returns where to begin to look in a pane.

    Returns:
        One observation of what happened; if nothing did before the timeout, one of each pane, in
        the order of `panes`.

    Raises:
        ArgumentError: A pattern can't be used.
        StorageError: There is no room for a capture of the screen.
    """
    matcher = Matcher(conditions.pattern, conditions.stop_pattern)
    clock = panes[0].clock
    deadline = clock.now() + conditions.timeout_s
    origins = [origin_of(pane) for pane in panes]
    happened: list[Observation] = []
    timed_out: dict[int, Observation] = {}
    errors: list[ToolError] = []
    async with anyio.create_task_group() as tasks:

        async def watch(number: int) -> None:
            new_watch = partial(Watch, panes[number], conditions, origins[number], matcher)
            try:
                try:
                    observation = await new_watch().first(deadline)
                except PaneLostError:  # it is known to have ended now, which the next watch sees
                    observation = await new_watch().first(deadline)
            except ToolError as error:  # raised below, since the task group would wrap it
                errors.append(error)
                tasks.cancel_scope.cancel()
                return
            if observation.reason is WaitReason.TIMED_OUT:
                timed_out[number] = observation
            elif not happened:
                happened.append(observation)
                tasks.cancel_scope.cancel()

        for number in range(len(panes)):
            tasks.start_soon(watch, number)
    if happened:
        return happened
    if errors:
        raise errors[0]
    return [timed_out[number] for number in sorted(timed_out)]
