"""The demo: a client debugs a broken web shop over stdio, as an agent would, and prints the conversation."""

import os
import re
import sys
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

_PATIENCE_S = 20


class Agent:
    """A client that tells what it does and shows what it is answered."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, why: str, tool: str, *, until: str = "", **arguments: str) -> str:
        """Call a tool, again until the answer has the text `until`; show the last answer and return it."""
        with anyio.fail_after(_PATIENCE_S):
            while until not in (answer := await self._answer(tool, arguments)):
                await anyio.sleep(0.02)
        shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        print(f"\n# {why}\n> {tool}({shown})\n  " + answer.replace("\n", "\n  "))
        return answer

    async def _answer(self, tool: str, arguments: dict[str, str]) -> str:
        result = await self._client.call_tool(tool, arguments)
        return "\n".join(block.text for block in result.content if block.type == "text")


def run_demo() -> int:
    """Debug the shop; return the exit status, 1 when there was nothing to debug."""
    return anyio.run(_debug)


async def _debug() -> int:
    env = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    here = Path(__file__).parent
    server = StdioServerParameters(command=sys.executable, args=["-m", "tmux_debug_mcp"], env=env, cwd=here)
    print("A web shop answers orders with an error. An agent with two terminals finds out why.")
    async with Client(server) as client:
        call = Agent(client).call
        await call("Start the shop.", "tmux_create_pane", name="shop", command="python3 shop.py serve")
        log = await call("It is ready.", "tmux_capture_pane", pane_id="shop", until="listening on ")
        order = f"python3 shop.py order {log.partition('listening on ')[2].split()[0]} tea 2"
        await call("Order two teas, in a second terminal.", "tmux_create_pane", name="customer", command=order)
        answer = await call("It failed.", "tmux_capture_pane", pane_id="customer", until="exited with code")
        log = await call("What did the shop log meanwhile?", "tmux_capture_pane", pane_id="shop")
        await call("Stop the shop.", "tmux_send_keys", pane_id="shop", keys="C-c")
        await call("Both panes stay, and tell how they ended.", "tmux_list_panes", until='"signal":"SIGINT"')
    cause = re.search(r"line (\d+), in total\n +(.*)\n(?:.*\n)??(\w+Error: .*)", log)
    if "500" not in answer or cause is None:
        print("\nThe shop works: there was nothing to debug.")
        return 1
    print(f"\nFound in shop.py, line {cause[1]}: {cause[2]}\n  {cause[3]}")
    return 0
