"""The demo: a client debugs a broken web shop, as an agent would, and prints each call."""

import os
import re
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

# What a traceback says of `total`: the line number, the line, perhaps a line that underlines a part
# of it, and the error.
_CAUSE = re.compile(r"line (\d+), in total\n +(.*)\n(?:.*\n)??(\w+Error: .*)")

# Parameters of SGR sequences.
_BOLD, _FAINT, _CYAN = 1, 2, 36


def run_demo(tmux: str) -> int:
    """Debug the shop with this tmux; return the exit status, 1 when there was nothing to debug."""
    return anyio.run(_debug, tmux)


async def _debug(tmux: str) -> int:
    print("A web shop answers orders with an error. An agent with two terminals finds out why.")
    async with Client(_server(tmux)) as client:
        call = partial(_call, client)
        shop = {"name": "shop", "command": "python3 shop.py serve", "wait_for": "listening on"}
        log, ready = await call(
            "Start the shop, and wait until it is ready.", "tmux_create_pane", **shop
        )
        url = log.partition("listening on ")[2].split()[0]
        order = f"python3 shop.py order {url} tea 2"
        answer, _ = await call("Order two teas, in a second terminal.", "tmux_run", command=order)
        since = ready.get("cursor", 0)
        log, _ = await call(
            "It failed. What has the shop logged since?",
            "tmux_capture_pane",
            pane_id="shop",
            since=since,
        )
        await call("Stop the shop.", "tmux_send_keys", pane_id="shop", keys="C-c")
        await call("Both panes remain, and show how they ended.", "tmux_list_panes")
    cause = _CAUSE.search(log)
    if "500" not in answer or cause is None:
        print("\nThe shop works: there was nothing to debug.")
        return 1
    print(_styled(f"\nFound in shop.py, line {cause[1]}: {cause[2]}\n  {cause[3]}", _BOLD))
    return 0


def _server(tmux: str) -> StdioServerParameters:
    """Return how to start the server."""
    env = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    here = Path(__file__).parent
    # The server finds its modules where we found ours, without showing that path to the panes.
    path = f"import sys; sys.path[:] = {sys.path!r}"
    program = f"{path}; from tmux_debug_mcp.command.serve import main; main()"
    return StdioServerParameters(
        command=sys.executable, args=["-I", "-c", program, "--tmux", tmux], env=env, cwd=here
    )


async def _call(
    client: Client, why: str, tool: str, **arguments: str | int
) -> tuple[str, Mapping[str, Any]]:
    """Call a tool, print why and the answer, and return the answer's text and `_meta`."""
    result = await client.call_tool(tool, arguments)
    blocks = [block.text.rstrip("\n") for block in result.content if block.type == "text"]
    shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    print(_styled(f"\n# {why}", _BOLD))
    print(_styled(f"> {tool}({shown})", _CYAN))
    for block in blocks:
        text = "  " + block.replace("\n", "\n  ")
        is_status = len(blocks) > 1 and block == blocks[-1]
        print(_styled(text, _FAINT) if is_status else text)
    return "\n".join(blocks), result.meta or {}


def _styled(text: str, parameter: int) -> str:
    """Return text, with an attribute if a person reads it in a terminal that supports that."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in (None, "", "dumb")
    if is_plain or not sys.stdout.isatty():
        return text
    return f"\033[{parameter}m{text}\033[0m"
