"""A client made with version 1 of the Python SDK: it lists the tools and runs a command."""

import json
import os
import sys

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(command: str) -> None:
    async with (
        stdio_client(StdioServerParameters(command=command, env=dict(os.environ))) as streams,
        ClientSession(*streams) as session,
    ):
        await session.initialize()
        tools = (await session.list_tools()).tools
        ran = await session.call_tool("tmux_run", {"command": "echo $((6 * 7))"})
        text = ran.model_dump()["content"][0]["text"]
        print(json.dumps({"tools": [one.name for one in tools], "text": text}))


anyio.run(main, sys.argv[1])
