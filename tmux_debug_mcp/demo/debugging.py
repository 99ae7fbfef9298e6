"""The demo: an agent debugs a test that hangs, and a person types a password for it.

The agent is a script, and here the demo plays the person as well; the server, the programs and all
answers are real. `tests/tools/recording.py` makes the README's picture from the same story.
"""

import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import STDOUT
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

COLUMNS = 100
SECRET = "correct horse"  # noqa: S105

# Parameters of SGR sequences. A status line tells most, and is the brightest.
PLAIN, TITLE, SAID, CALL, STATUS = "0", "1", "32", "36", "1;33"

# Shows a text in a style; and, as a person, runs the command that asks for the password.
Show = Callable[[str, str], Awaitable[None]]
Person = Callable[[str], Awaitable[None]]


def run_demo(tmux: str) -> int:
    """Tell the story with this tmux; return the exit status, 1 if it went differently."""
    return anyio.run(_tell, tmux)


async def story(client: Client, show: Show, person: Person, **defaults: float) -> bool:
    """Have an agent debug and deploy, with further arguments in each call; tell if it could."""

    async def call(tool: str, **arguments: Any) -> tuple[str, str]:  # noqa: ANN401
        """Call a tool, show that, and return the answer's text and its status line."""
        shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        await show(f"> {tool}({shown})", CALL)
        result = await client.call_tool(tool, defaults | arguments)
        blocks = [block.text.rstrip("\n") for block in result.content if block.type == "text"]
        # What may be before these only confirms the call.
        *_, text, status = ["", *(textwrap.indent(block, "  ") for block in blocks)]
        await show(text, PLAIN)
        await show(status, STATUS)
        return text, status

    title = "An agent with tmux-debug-mcp: why a test hangs, and a password that it never sees."
    await show(title, TITLE)

    await show("\n# The test hangs. On what, and in which line?", SAID)
    text, _ = await call("tmux_run", command="python3 test_bank.py", timeout_s=1.5)
    line = re.search(r"line (\d+), in transfer\b", text)
    if line is None:
        return False

    await show("\n# Look at both locks there, in the debugger: three steps in one call.", SAID)
    await call("tmux_create_pane", name="pdb", command="python3 -m pdb test_bank.py")
    steps = [f"break {line[1]} Enter", "continue Enter", "p payer, payee Enter"]
    await call("tmux_send_keys", pane_id="pdb", keys=steps)

    found = "Found: each has the lock that the other wants."
    await show(f"\n# {found} Now deploy, with a password that a person types.", SAID)
    _, status = await call("tmux_run", command="python3 deploy.py")
    command = status.partition("a person can type it: ")[2].partition(";")[0]
    if not command:
        return False
    await person(command)
    text, _ = await call("tmux_wait", pane_id=command.split()[-1])
    return "deployed" in text


def wrapped(text: str, columns: int = COLUMNS) -> str:
    """Return text in lines of at most so many columns, indented as those that they continue."""
    wrapper = textwrap.TextWrapper(columns, break_on_hyphens=False)
    rows = []
    for line in text.split("\n"):
        wrapper.subsequent_indent = line[: len(line) - len(line.lstrip())]
        rows.append(wrapper.fill(line))
    return "\n".join(rows)


@contextmanager
def project(parent: str | None = None) -> Iterator[str]:
    """Give a directory with the programs, whose path is short enough to be shown."""
    with TemporaryDirectory(prefix="bank-", dir=parent) as directory:
        for program in ("test_bank.py", "deploy.py"):
            shutil.copy(Path(__file__).with_name(program), directory)
        yield directory


async def _tell(tmux: str) -> int:
    program, *arguments = _program("serve", "--tmux", tmux)
    env = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with project() as directory:
        server = StdioServerParameters(command=program, args=arguments, env=env, cwd=directory)
        async with Client(server) as client:
            is_told = await story(client, _print, _type_secret)
    end = "The agent has left, and what still ran in its terminals has ended."
    other = "That didn't go as it should. Perhaps tmux-debug doctor finds out why."
    await _print(f"\n{end if is_told else other}", TITLE)
    return 0 if is_told else 1


async def _type_secret(command: str) -> None:
    await _print(f"$ {command}   # a person, in another terminal (here: the demo)", SAID)
    words = _program("main", *shlex.split(command)[1:])
    secret = f"{SECRET}\n".encode()
    done = await anyio.run_process(words, input=secret, stderr=STDOUT, check=False)
    await _print(textwrap.indent(done.stdout.decode().rstrip(), "  "), PLAIN)


def _program(module: str, *words: str) -> list[str]:
    """Return the command for a program of ours.

    It finds its modules where we found ours, without showing that path to the panes.
    """
    path = f"import sys; sys.path[:] = {sys.path!r}"
    run = f"{path}; from tmux_debug_mcp.command.{module} import main; main()"
    return [sys.executable, "-I", "-c", run, *words]


async def _print(text: str, style: str) -> None:
    """Print text, in a style if a person reads it in a terminal that supports that."""
    text = wrapped(text, min(COLUMNS, shutil.get_terminal_size((COLUMNS, 0)).columns))
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in (None, "", "dumb")
    if not is_plain and sys.stdout.isatty():
        text = f"\033[{style}m{text}\033[0m"
    print(text, flush=True)
