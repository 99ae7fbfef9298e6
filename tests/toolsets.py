"""Clients of the toolsets `tabs`, `terminal` and `tmux`, each in the words of its toolset."""

import base64
import io
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from PIL import Image
from support import Caller, in_process, python, until

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.settings import Settings

# Prints a line every millisecond, numbered and in colour.
NOISE = python("""
import time
for number in range(100_000):
    print(f"\\33[32mline {number}\\33[0m", flush=True)
    time.sleep(0.001)
""")


class Tabs(Caller):
    """The tools of the toolset `tabs`."""

    async def new(self, **arguments: Any) -> str:  # noqa: ANN401
        """Return the id of a new tab."""
        return str((await self.json("create_tab", **arguments))["window_id"])

    async def rows(self) -> dict[str, dict[str, Any]]:
        """Return what list_tabs has of each tab, by its id."""
        return {row["window_id"]: row for row in (await self.json("list_tabs"))["tabs"]}

    async def execute(self, tab: str, command: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        """Run a command and return the whole result."""
        result: dict[str, Any] = await self.json(
            "execute_command", window_id=tab, command=command, **arguments
        )
        return result

    async def output(self, tab: str, command: str) -> str:
        """Return what a command prints."""
        return str((await self.execute(tab, command))["output"])

    async def read(self, tab: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        """Read the last lines of a tab's log."""
        result: dict[str, Any] = await self.json("read_logs_from_tab", window_id=tab, **arguments)
        return result

    async def stream(self, tab: str, from_byte: int = 0, **arguments: Any) -> tuple[str, int]:  # noqa: ANN401
        """Return the log from an offset to its end, put together, and the next offset."""
        text, at, is_end = "", from_byte, False
        while not is_end:
            chunk = await self.json(
                "stream_logs_from_tab", window_id=tab, from_byte=at, **arguments
            )
            assert chunk["next_byte"] > at or chunk["eof"]
            text, at, is_end = text + chunk["chunk"], chunk["next_byte"], chunk["eof"]
        return text, at

    async def shows(self, tab: str, text: str) -> str:
        """Wait until the log has the text, and return its last lines."""
        read = partial(self.read, tab, strip_ansi=True)
        return str((await until(read, lambda result: text in result["content"]))["content"])

    async def shows_foreground(self, tab: str, name: str) -> None:
        """Wait until this program has the tab's terminal."""
        await until(self.rows, lambda rows: rows[tab].get("foreground") == name)

    async def exited(self, tab: str) -> None:
        """Wait until the tab's program has ended."""
        await until(self.rows, lambda rows: rows[tab]["status"] != "running")

    async def ends_with(self, tab: str, command: str) -> None:
        """Have a command's output as the last thing in the log: no prompt comes after it."""
        command = f"{command}; echo the-$((1))-end; exec sleep 99"
        await self.json("start_process", window_id=tab, command=command)
        await self.shows(tab, "\nthe-1-end")


class Terminal(Caller):
    """The tools of the toolset `terminal`; a session is the one called `default` unless said."""

    async def rows(self) -> dict[str, dict[str, Any]]:
        """Return what listSessions has of each session, by its name."""
        return {row["session"]: row for row in await self.json("listSessions")}

    async def shot(self, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        """Take a screenshot as text."""
        result: dict[str, Any] = await self.json("takeScreenshot", **arguments)
        return result

    async def picture(self, **arguments: Any) -> Image.Image:  # noqa: ANN401
        """Take a screenshot as a picture."""
        result = await self.call("takeScreenshot", format="png", **arguments)
        [first, second] = result.content
        assert first.type == "text"
        assert set(json.loads(first.text)) == {"content", "cursor", "dimensions"}
        assert second.type == "image"
        assert second.mime_type == "image/png"
        return Image.open(io.BytesIO(base64.b64decode(second.data))).convert("RGB")

    async def shows(self, wanted: str | Callable[[str], bool], **arguments: Any) -> str:  # noqa: ANN401
        """Wait until the screen has a text, or is as wanted, and return the screen."""

        def is_shown(shot: Mapping[str, Any]) -> bool:
            content = shot["content"]
            return wanted in content if isinstance(wanted, str) else wanted(content)

        return str((await until(partial(self.shot, **arguments), is_shown))["content"])

    async def shows_cursor(self, column: int, row: int, **arguments: Any) -> None:  # noqa: ANN401
        """Wait until the cursor is here; the first column and row are 0."""
        cursor = {"x": column, "y": row}
        await until(partial(self.shot, **arguments), lambda shot: shot["cursor"] == cursor)

    async def shows_foreground(self, session: str, name: str) -> None:
        """Wait until this program has the session's terminal."""
        await until(self.rows, lambda rows: rows[session].get("foreground") == name)

    async def exited(self, session: str = "default") -> None:
        """Wait until the session's program has ended."""
        await until(self.rows, lambda rows: rows[session]["status"] != "running")

    async def stopped_recording(self) -> None:
        """Wait until no session is being recorded."""
        await until(self.rows, lambda rows: not any("recording" in row for row in rows.values()))


class Tmux(Caller):
    """The tools of the toolset `tmux`."""

    async def rows(self, what: str, **arguments: Any) -> list[list[str]]:  # noqa: ANN401
        """Return the columns of the rows of a list: of sessions, windows or panes."""
        text, *_ = await self.blocks(f"list_{what}", **arguments)
        return [line.split("\t") for line in text.splitlines()]

    async def shows(self, target: str, text: str) -> str:
        """Wait until a pane shows a text, and return all that it shows."""
        return await until(
            partial(self.text, "read_pane", target=target), lambda content: text in content
        )

    async def runs(self, target: str, command: str) -> None:
        """Wait until a pane's last column is this: its program, or how that has ended."""

        def is_wanted(rows: list[list[str]]) -> bool:
            names = [(row[2], f"{row[0]}:{row[1]}.{row[3]}") for row in rows]
            number = next((at for at, has in enumerate(names) if target in has), -1)
            return rows[number][-1] == command

        await until(partial(self.rows, "panes", target=target), is_wanted)

    async def session_gone(self, name: str) -> None:
        """Wait until there is no session of this name."""
        sessions = partial(self.rows, "sessions")
        await until(sessions, lambda rows: name not in [row[0] for row in rows])


@asynccontextmanager
async def open_tabs(
    settings: Settings, archive: Archive | None = None, clock: Clock | None = None
) -> AsyncIterator[Tabs]:
    """Serve the toolset `tabs` in this process."""
    async with in_process(settings, toolsets="tabs", archive=archive, clock=clock) as tools:
        yield Tabs(tools.client, tools.engine, prefix="")


@asynccontextmanager
async def open_terminal(
    settings: Settings, archive: Archive | None = None
) -> AsyncIterator[Terminal]:
    """Serve the toolset `terminal` in this process."""
    async with in_process(settings, toolsets="terminal", archive=archive) as tools:
        yield Terminal(tools.client, tools.engine, prefix="")


@asynccontextmanager
async def open_tmux(settings: Settings, clock: Clock | None = None) -> AsyncIterator[Tmux]:
    """Serve the toolset `tmux` in this process."""
    async with in_process(settings, toolsets="tmux", clock=clock) as tools:
        yield Tmux(tools.client, tools.engine, prefix="tmux_")
