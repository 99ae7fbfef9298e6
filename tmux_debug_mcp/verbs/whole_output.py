"""The whole output of a run: a result leaves out what is too long, a shell's pipe wants all of it.

It is read from the pane's log and sent in pieces, as fast as the caller takes them. Other calls run
between two pieces.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tmux_debug_mcp.logs.seen import read_pieces
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.sockets.listener import Caller

from .registry import VERBS, Prints
from .requests import Request


class LastPiece(NamedTuple):
    """The last piece of an output, which is not sent yet.

    `gone_bytes` of the output were no longer kept.
    """

    text: str
    gone_bytes: int


async def send_but_last(
    engine: Engine, caller: Caller, request: Request, facts: Mapping[str, Any]
) -> LastPiece | None:
    """Send the output of a run, but for its last piece, which is returned.

    `facts` are the `_meta` of its result. Return None, and send nothing, if the result has all that
    is to be printed, or the pane is gone.
    """
    is_text = request.verb is VERBS["run"] and request.prints not in (Prints.ERRORS, Prints.JSON)
    if not is_text or "show" in request.arguments or not facts.get("marked_lines"):
        return None
    panes = [pane for pane in engine.panes if pane.id == facts["pane_id"]]
    if not panes or "end_cursor" not in facts:  # it is a screen, or in no log
        return None
    [pane] = panes
    last, gone_bytes = "", 0
    with pane.keeping_log():
        async for text, gone in read_pieces(pane.log, facts["start_cursor"], facts["end_cursor"]):
            gone_bytes += gone
            if last and text:
                await caller.send({"out": last})
            last = text or last
    return LastPiece(last, gone_bytes)
