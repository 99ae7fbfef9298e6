"""No turn of the event loop has much work, whatever a pane prints and a call brings.

So other calls are answered meanwhile.
"""

import pytest
from turns import largest_turns, works

from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.turns import TURN_WORK

# The most work of a turn. How long that takes is a figure of `./dev bench`.
MOST = {
    "work for terminals": TURN_WORK,
    "bytes of tmux": 1 << 16,
    "matched characters": 1 << 19,  # of 4 KiB of output, which may repeat characters
    "bytes of logs": 1 << 23,  # around the lines that a search has found
    "states of panes": 8,
    "lists of sockets": 1,
}
# What takes no turns has twice the work of one. The rest of a stream is the same again.
WORK = works(max_bytes=2 * TURN_WORK)


@pytest.mark.parametrize("name", WORK)
async def test_no_turn_has_more_work_than_other_calls_can_wait_for(
    settings: Settings, name: str
) -> None:
    with largest_turns() as most:
        await WORK[name](settings)

    assert most
    assert {unit: size for unit, size in most.items() if size > MOST[unit]} == {}
