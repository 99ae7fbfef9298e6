"""The pictures of the README and the pages, from one real session.

It's the story of the demo, with a person who types into a real shell. What the agent asks for and
gets is printed in a terminal; the person's shell is below. Both are photographed after each step,
at a pace for reading, for `demo.png` and, for asciinema, `demo.cast`. `audit.png` is the page of
the session's audit in a browser. Run as a program, this writes them.
"""

import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import TextIO

import anyio
from browsers import chromium
from mcp import Client, StdioServerParameters
from PIL import Image
from support import PATIENCE_S

from tmux_debug_mcp.demo.debugging import (
    COLUMNS,
    SECRET,
    STATUS,
    project,
    story,
    wrapped,
)
from tmux_debug_mcp.panes.capturing import capture_screen
from tmux_debug_mcp.panes.creation import NewPane
from tmux_debug_mcp.panes.engine import open_engine
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.pictures.png import draw
from tmux_debug_mcp.pictures.screen import Cell, DrawnScreen
from tmux_debug_mcp.pictures.styles import Style
from tmux_debug_mcp.settings import Settings, pane_environment

DOCS = Path(__file__).parents[2] / "docs"
PICTURE, CAST, PAGE = DOCS / "demo.png", DOCS / "demo.cast", DOCS / "audit.png"
TITLE = "An agent and a person debug in the same terminals"
MAX_BYTES = 400_000
AGENT_ROWS, PERSON_ROWS = 26, 4

# The pace, in seconds: for a person's word, a step, each line of an answer, and the end.
_WORD_S, _STEP_S, _LINE_S, _END_S = 0.15, 0.5, 0.16, 2.5
# Enough for the text, its styles and the edges of its letters.
_COLOURS = 64

# Of the titles of both terminals: darker than what is in these.
_TITLE = Style(foreground=7, background=238)


@dataclass
class Film:
    """Frames of both terminals, and for how many seconds each is to be seen."""

    agent: Pane
    person: Pane
    pipe: TextIO
    frames: list[tuple[float, DrawnScreen]] = field(default_factory=list)
    marks: int = 0
    new_lines: int = 0

    async def photograph(self, shown_s: float) -> None:
        """Photograph both terminals as they are now."""
        screens = [await capture_screen(pane) for pane in (self.agent, self.person)]
        self.frames.append((shown_s, stacked(*screens)))

    async def print(self, text: str, style: str) -> None:
        """Print lines of the agent's session, and photograph each whole answer."""
        # A title shows nothing, and tells that the terminal has got what is before it.
        self.marks += 1
        mark = f"\033]0;mark {self.marks}\a"
        rows = wrapped(text).split("\n")
        self.pipe.writelines(f"\033[{style}m{row}\033[0m\n" for row in rows)
        self.pipe.write(mark)
        self.pipe.flush()
        await until(self.agent, mark)
        self.new_lines += len(rows)
        if style == STATUS:
            await self.photograph(_STEP_S + self.new_lines * _LINE_S)
            self.new_lines = 0

    async def type_secret(self, command: str) -> None:
        """Do what the status line asks a person for."""
        await self.type(command, "Secret for")
        await self.type(SECRET, "$ ", is_hidden=True)

    async def type(self, text: str, shows: str, *, is_hidden: bool = False) -> None:
        """Type a line as the person, and photograph each word and what comes of the line."""
        for word in re.findall(r"\S+ *", text):
            start = self.person.log.size
            await self.press(word)
            if not is_hidden:
                await until(self.person, word.rstrip()[-1], start)
                await self.photograph(_WORD_S)
        start = self.person.log.size
        await self.press("\r")
        await until(self.person, shows, start)
        await self.photograph(_STEP_S)

    async def press(self, keys: str) -> None:
        """Type keys as the person."""
        codes = [f"{byte:x}" for byte in keys.encode()]
        await self.person.client.run(("send-keys", "-t", self.person.place.target, "-H", *codes))


def stacked(agent: DrawnScreen, person: DrawnScreen) -> DrawnScreen:
    """Return a screen with two others in it, each below its title."""
    rows: list[Sequence[Cell]] = []
    for title, screen in (("the agent", agent), ("a person, in another terminal", person)):
        rows.append(styled(f" {title}".ljust(COLUMNS), _TITLE))
        rows += [*screen.rows, *[[]] * (screen.height - len(screen.rows))]
    column, row = person.cursor
    cursor = (column, 2 + agent.height + row)
    return DrawnScreen(COLUMNS, len(rows), cursor, person.is_cursor_shown, rows)


def styled(text: str, style: Style) -> list[Cell]:
    return [Cell(character, 1, style) for character in text]


def cast(frames: Sequence[tuple[float, DrawnScreen]]) -> str:
    """Return a recording for asciinema. Source: asciicast v2."""
    _, first = frames[0]
    header = {"version": 2, "width": first.columns, "height": first.height, "title": TITLE}
    lines = [json.dumps(header)]
    shown: list[str] = [""] * first.height
    at_s = 0.0
    for shown_s, screen in frames:
        rows = [drawn(row) for row in screen.rows]
        text = "".join(
            f"\033[{number};1H{row}\033[K"
            for number, (row, before) in enumerate(zip(rows, shown, strict=True), 1)
            if row != before
        )
        shown = rows
        column, row = screen.cursor
        text += f"\033[{row + 1};{column + 1}H"
        lines.append(json.dumps([round(at_s, 3), "o", text]))
        at_s += shown_s
    return "\n".join(lines) + "\n"


def animate(frames: Sequence[tuple[float, DrawnScreen]], path: Path) -> None:
    """Write an animated PNG, which begins again and again."""
    pictures = [Image.open(BytesIO(draw(screen))) for _, screen in frames]
    colours = pictures[-1].quantize(_COLOURS)
    first, *others = [
        picture.quantize(palette=colours, dither=Image.Dither.NONE) for picture in pictures
    ]
    first.save(
        path,
        save_all=True,
        append_images=others,
        duration=[round(shown_s * 1000) for shown_s, _ in frames],
    )


def drawn(row: Sequence[Cell]) -> str:
    """Return the text of a row with sequences for what the session has of styles."""
    text = ""
    for style, cells in groupby(row, lambda cell: cell.style):
        flags = {"1": style.bold, "2": style.dim, "7": style.reverse}
        codes = ["0", *(code for code, is_set in flags.items() if is_set)]
        colours = {"38": style.foreground, "48": style.background}
        codes += [f"{code};5;{one}" for code, one in colours.items() if isinstance(one, int)]
        text += f"\033[{';'.join(codes)}m" + "".join(cell.text for cell in cells)
    return text + "\033[0m"


async def until(pane: Pane, text: str, since: int = 0) -> None:
    """Wait until a terminal got a text behind a cursor."""
    with anyio.fail_after(PATIENCE_S):
        async with pane.subscribe() as subscription:
            while text.encode() not in pane.log.read(max(since, pane.log.kept_from), pane.log.size):
                await subscription.wait(PATIENCE_S)


@dataclass
class Session:
    """What the session has left: the frames, and its audit as a page."""

    frames: list[tuple[float, DrawnScreen]]
    page: str


async def session() -> Session:
    """Have the agent and the person meet."""
    with project("/tmp") as name:  # noqa: S108  a short path, wherever TMPDIR is
        directory = Path(name)
        env = studio(directory)
        audit = ["--audit", str(directory / "audit.log"), "--log-dir", str(directory / "logs")]
        server = StdioServerParameters(
            command=str(directory / "bin/tmux-debug-mcp"),
            args=audit,
            env=env,
            cwd=directory,
        )
        pipe = directory / "pipe"
        os.mkfifo(pipe)
        async with open_engine(Settings(env, directory)) as engine, Client(server) as client:
            printed = NewPane(f"exec cat {pipe}", columns=COLUMNS, rows=AGENT_ROWS)
            shell = NewPane("exec env PS1='$ ' bash --norc", columns=COLUMNS, rows=PERSON_ROWS)
            agent, person = [await engine.create(one) for one in (printed, shell)]
            with pipe.open("w") as file:
                film = Film(agent, person, file)
                await until(person, "$ ")
                # On a busy machine, a program takes longer than an agent waits by default.
                await story(client, film.print, film.type_secret, timeout_s=PATIENCE_S)
                film.frames[-1] = _END_S, film.frames[-1][1]
        page = directory / "page.html"
        command = ["bin/tmux-debug", "audit", "audit.log", "--html", str(page), "--log-dir", "logs"]
        await anyio.run_process(command, cwd=directory, env=env)
        return Session(film.frames, page.read_text())


def studio(directory: Path) -> dict[str, str]:
    """Make the programs of the session in a directory, and return its environment."""
    (directory / "bin").mkdir()
    for name, module in (("tmux-debug", "main"), ("tmux-debug-mcp", "serve")):
        run = f"from tmux_debug_mcp.command.{module} import main; main()"
        program = directory / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-c", run])} "$@"\n')
        program.chmod(0o755)
    (directory / "run").mkdir(0o700)
    return pane_environment(os.environ, ["TMUX*"]) | {
        "PATH": f"{directory}/bin:{os.environ['PATH']}",
        "XDG_RUNTIME_DIR": f"{directory}/run",
        "XDG_STATE_HOME": f"{directory}/state",
        "USER": "alice",
    }


def photograph(page: str, path: Path) -> None:
    """Write a picture of a page in a browser."""
    with tempfile.TemporaryDirectory() as directory, chromium() as browser:
        file = Path(directory) / "page.html"
        file.write_text(page)
        tab = browser.new_page(viewport={"width": 1200, "height": 720})
        tab.goto(file.as_uri())
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
            tab.keyboard.press(key)
        tab.get_by_text("Printed meanwhile").first.wait_for()
        tab.screenshot(path=path)


def main() -> None:
    """Write the pictures."""
    made = anyio.run(session)
    animate(made.frames, PICTURE)
    CAST.write_text(cast(made.frames))
    photograph(made.page, PAGE)


if __name__ == "__main__":
    main()
