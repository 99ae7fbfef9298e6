"""No turn of the event loop has much work, whatever a pane prints and a call brings.

So other calls are answered meanwhile.
"""

import pytest
from turns import largest_turns, too_much, works

from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.turns import TURN_WORK

# What takes no turns has twice the work of one. The rest of a stream is the same again.
WORK = works(max_bytes=2 * TURN_WORK)


@pytest.mark.parametrize("name", WORK)
async def test_no_turn_has_more_work_than_other_calls_can_wait_for(
    settings: Settings, name: str
) -> None:
    with largest_turns() as most:
        await WORK[name](settings)

    assert most
    assert too_much(most) == {}
