"""The floor: a server of the bare SDK with one tool that does nothing, on the SDK's own stdio."""

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOL = types.Tool(
    name="nothing", description="Do nothing.", input_schema={"type": "object", "properties": {}}
)


async def list_tools(
    _ctx: ServerRequestContext[None], _params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    """Return the one tool."""
    return types.ListToolsResult(tools=[TOOL])


async def call_tool(
    _ctx: ServerRequestContext[None], _params: types.CallToolRequestParams
) -> types.CallToolResult:
    """Do nothing."""
    return types.CallToolResult(content=[types.TextContent(type="text", text="done")])


async def main() -> None:
    """Serve until the end of input."""
    server: Server[None] = Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
