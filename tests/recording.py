"""The pictures of the README and the pages, from one real session.

A client calls a real server, and a person types into a real shell beside it. What the client asks
for and gets is printed in a terminal on the left; the person's shell is on the right. Both are
photographed after each step, at a pace for reading, for `demo.png` and, for asciinema, `demo.cast`.
`audit.png` is the page of the session's audit in a browser. Run as a program, this writes them.
"""

import json
import os
import re
import shlex
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, TextIO

import anyio
from browsers import chromium
from mcp import Client, StdioServerParameters
from PIL import Image
from support import PATIENCE_S

from tmux_debug_mcp.panes.capturing import capture_screen
from tmux_debug_mcp.panes.creation import NewPane
from tmux_debug_mcp.panes.engine import open_engine
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.pictures.png import draw
from tmux_debug_mcp.pictures.screen import Cell, Screen
from tmux_debug_mcp.pictures.styles import Style
from tmux_debug_mcp.settings import Settings, pane_environment

DOCS = Path(__file__).parents[1] / "docs"
PICTURE, CAST, PAGE = DOCS / "demo.png", DOCS / "demo.cast", DOCS / "audit.png"
TITLE = "An agent and a person debug in the same terminals"
MAX_BYTES = 400_000
LEFT, RIGHT, ROWS = 62, 44, 26

# The pace, in seconds: between a person's words, before an answer, and for reading a text and each
# line of it.
_WORD_S, _ANSWER_S = 0.25, 0.8
_READ_S, _LINE_S = 0.6, 0.12
_HOLD_S = 4.0
# Enough for the text, its styles and the edges of its letters.
_COLOURS = 16

_BOLD, _FAINT, _CYAN = 1, 2, 36

SECRET = "correct horse"  # noqa: S105
# The programs that the agent debugs.
PROGRAMS = {
    "cart.py": """\
def total(items):
    cost = 0
    for item in items:
        cost += item["price"] * item["count"]
    return cost

print(total([{"price": "4", "count": 3}]))
""",
    "report.py": """\
import os
readable, writable = os.pipe()
os.write(writable, b"row\\n" * 50_000)
""",
    "deploy.sh": """\
read -rsp "Password of the server: " password; echo
echo "deployed ($((${#password} * 0 + 3)) files)"
""",
}


@dataclass
class Film:
    """Frames of both terminals, and when each appears."""

    left: Pane
    right: Pane
    pipe: TextIO
    frames: list[tuple[float, Screen]] = field(default_factory=list)
    at_s: float = 0.0
    marks: int = 0

    async def show(self, delay_s: float) -> None:
        """Photograph both terminals as they are now, so long after the photograph before."""
        self.at_s = round(self.at_s + delay_s, 3)
        left, right = [await capture_screen(pane) for pane in (self.left, self.right)]
        self.frames.append((self.at_s, beside(left, right)))

    async def print(self, text: str, parameter: int, delay_s: float) -> None:
        """Print lines on the left, and photograph that."""
        # A title shows nothing, and tells that the terminal has got what is before it.
        self.marks += 1
        mark = f"\033]0;mark {self.marks}\a"
        for line in text.split("\n"):
            indent = " " * (len(line) - len(line.lstrip()))
            for row in textwrap.wrap(line, LEFT - 1, subsequent_indent=indent) or [""]:
                self.pipe.write(f"\033[{parameter}m{row}\033[0m\n")
        self.pipe.write(mark)
        self.pipe.flush()
        await until(self.left, mark)
        await self.show(delay_s)

    async def type(self, text: str, shows: str, *, is_hidden: bool = False) -> None:
        """Type a line as the person, and photograph each word and what comes of the line."""
        for word in re.findall(r"\S+ *", text):
            start = self.right.log.size
            await self.press(word)
            if not is_hidden:
                await until(self.right, word.rstrip()[-1], start)
            await self.show(_WORD_S)
        start = self.right.log.size
        await self.press("\r")
        await until(self.right, shows, start)
        await self.show(_ANSWER_S)

    async def press(self, keys: str) -> None:
        """Type keys as the person."""
        codes = [f"{byte:x}" for byte in keys.encode()]
        await self.right.client.run(("send-keys", "-t", self.right.place.target, "-H", *codes))


def beside(left: Screen, right: Screen) -> Screen:
    """Return a screen with two others in it below their titles, and a line between them."""
    title = Style(reverse=True)
    line = [Cell("│", 1, Style(dim=True))]
    rows = [
        [
            *styled(" the agent".ljust(LEFT), title),
            *line,
            *styled(" a person".ljust(RIGHT), title),
        ]
    ]
    for number in range(ROWS):
        row, other = (
            screen.rows[number] if number < len(screen.rows) else [] for screen in (left, right)
        )
        blanks = " " * (LEFT - sum(cell.width for cell in row))
        rows.append([*row, *styled(blanks, Style()), *line, *other])
    column, number = right.cursor
    cursor = (LEFT + 1 + column, 1 + number)
    return Screen(LEFT + 1 + RIGHT, 1 + ROWS, cursor, right.is_cursor_shown, rows)


def styled(text: str, style: Style) -> list[Cell]:
    return [Cell(character, 1, style) for character in text]


def cast(frames: Sequence[tuple[float, Screen]]) -> str:
    """Return a recording for asciinema. Source: asciicast v2."""
    _, first = frames[0]
    header = {"version": 2, "width": first.columns, "height": first.height, "title": TITLE}
    lines = [json.dumps(header)]
    shown: list[str] = [""] * first.height
    for at_s, screen in frames:
        rows = [drawn(row) for row in screen.rows]
        text = "".join(
            f"\033[{number};1H{row}\033[K"
            for number, (row, before) in enumerate(zip(rows, shown, strict=True), 1)
            if row != before
        )
        shown = rows
        column, row = screen.cursor
        text += f"\033[{row + 1};{column + 1}H"
        lines.append(json.dumps([at_s, "o", text]))
    return "\n".join(lines) + "\n"


def animate(frames: Sequence[tuple[float, Screen]], path: Path) -> None:
    """Write an animated PNG, which begins again and again."""
    times = [*(at_s for at_s, _ in frames), frames[-1][0] + _HOLD_S]
    pictures = [Image.open(BytesIO(draw(screen))) for _, screen in frames]
    colours = pictures[-1].quantize(_COLOURS)
    first, *others = [
        picture.quantize(palette=colours, dither=Image.Dither.NONE) for picture in pictures
    ]
    first.save(
        path,
        save_all=True,
        append_images=others,
        duration=[round((end_s - at_s) * 1000) for at_s, end_s in pairwise(times)],
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


class Agent:
    """The client, whose calls are printed."""

    def __init__(self, client: Client, film: Film) -> None:
        self._client = client
        self._film = film

    async def say(self, text: str) -> None:
        """Print what it is about to do."""
        await self._film.print(f"\n# {text}", _BOLD, _READ_S)

    async def call(self, tool: str, **arguments: Any) -> str:  # noqa: ANN401
        """Call a tool of the toolset `debug`, print the call and its answer, and return its end."""
        shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        await self._film.print(f"> {tool}({shown})", _CYAN, _READ_S)
        # On a busy machine, a program takes longer than an agent waits by default.
        patience = {"timeout_s": PATIENCE_S}
        result = await self._client.call_tool(f"tmux_{tool}", patience | arguments)
        blocks = [one.text.rstrip("\n") for one in result.content if one.type == "text"]
        confirmed = ("Created pane", "Sent keys", "Killed pane")
        *texts, status = [one for one in blocks if not one.startswith(confirmed)]
        delay_s = _ANSWER_S
        for text in texts:
            await self._film.print(f"  {text}".replace("\n", "\n  "), 0, delay_s)
            delay_s = 0.0
        await self._film.print(f"  {status}".replace("\n", "\n  "), _FAINT, delay_s)
        lines = 1 + sum(text.count("\n") + 1 for text in texts)
        await self._film.show(_READ_S + _LINE_S * lines)
        return status


async def story(agent: Agent, film: Film) -> None:
    """Have the agent and the person do what the picture shows."""
    await agent.say("Why does the cart fail? Follow it in the debugger.")
    await agent.call("create_pane", name="pdb", command="python3 -m pdb cart.py")
    steps = ["break 4 Enter", "continue Enter", "p cost, item Enter", "next Enter"]
    await agent.call("send_keys", pane_id="pdb", keys=steps)

    await agent.say("The report hangs. On what?")
    await agent.call("create_pane", name="report", command="python3 report.py")

    await agent.say("The deployment wants a password. That is not for me.")
    status = await agent.call("create_pane", name="deploy", command="bash deploy.sh")
    line = " ".join(status.split()).partition("can type it: ")[2].partition(";")[0]
    await film.type(line, "deploy")
    await film.type(SECRET, "$ ", is_hidden=True)
    await agent.call("wait", pane_id="deploy")

    server = line.partition(" secret ")[0]
    await film.type(f"{server} attach --write pdb", "(Pdb)")
    await agent.say("Somebody has taken over the debugger.")
    await film.type("p items", "4")
    await agent.call("send_keys", pane_id="pdb", keys="quit Enter")
    start = film.right.log.size
    await film.press("\x02d")
    await until(film.right, "$ ", start)
    await agent.call("send_keys", pane_id="pdb", keys="quit Enter")


@dataclass
class Session:
    """What the session has left: the frames, and its audit as a page."""

    frames: list[tuple[float, Screen]]
    page: str


async def session() -> Session:
    """Have the agent and the person meet."""
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as name,
        tempfile.TemporaryDirectory(prefix="shop-", dir="/tmp") as project,
    ):
        directory = Path(name)
        for program, text in PROGRAMS.items():
            (Path(project) / program).write_text(text)
        env = studio(directory)
        audit = ["--audit", str(directory / "audit.log"), "--log-dir", str(directory / "logs")]
        server = StdioServerParameters(
            command=str(directory / "bin/tmux-debug-mcp"),
            args=audit,
            env=env,
            cwd=project,
        )
        pipe = directory / "pipe"
        os.mkfifo(pipe)
        async with open_engine(Settings(env, directory)) as engine, Client(server) as client:
            shown = NewPane(f"exec cat {pipe}", columns=LEFT, rows=ROWS)
            shell = NewPane("exec env PS1='$ ' bash --norc", columns=RIGHT, rows=ROWS)
            left, right = [await engine.create(one) for one in (shown, shell)]
            with pipe.open("w") as file:
                film = Film(left, right, file)
                await until(right, "$ ")
                await story(Agent(client, film), film)
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
        for key in ("ArrowDown", "ArrowDown", "Enter"):
            tab.keyboard.press(key)
        tab.get_by_text("Printed meanwhile").wait_for()
        tab.screenshot(path=path)


def main() -> None:
    """Write the pictures."""
    made = anyio.run(session)
    animate(made.frames, PICTURE)
    CAST.write_text(cast(made.frames))
    photograph(made.page, PAGE)


if __name__ == "__main__":
    main()
