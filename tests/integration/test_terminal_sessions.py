"""The toolset `terminal`: what a session's name means, the size of programs, and keys that depend on the program."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from support import PATIENCE_S, Tools, in_process, python, run_of

from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.settings import Settings

# Programs that edit a line, by what they do with it.
EDITORS = {
    "bash": "bash --norc",
    "fish": "fish --no-config",
    "zsh with terminfo": "zsh -f -i",
    "python": python("import readline; print('got', input('> '))"),
    "an xterm's user": python(
        "import os, tty\ntty.setraw(0)\nprint('> ', end='', flush=True)\ntext = ''\n"
        "while not text.endswith('\\r'): text += os.read(0, 1).decode()\n"
        "print(repr(text.replace(chr(27) + '[H', 'HOME').replace(chr(27) + '[F', 'END')))"
    ),
}
ZSH = (
    "bindkey $terminfo[khome] beginning-of-line; bindkey $terminfo[kend] end-of-line; "
    "zle-line-init() { echoti smkx }; zle -N zle-line-init; clear\n"
)


@pytest.fixture
async def term(settings: Settings) -> AsyncIterator[Tools]:
    async with in_process(settings, toolsets="terminal") as tools:
        yield tools


async def ended(term: Tools, name: str) -> None:
    """Wait until the session's program has ended."""
    with anyio.fail_after(PATIENCE_S):
        while {row["session"]: row["status"] for row in await term.json("listSessions")}[name] != "exited":
            await anyio.sleep(0.005)


async def shows(term: Tools, wanted: str, **arguments: Any) -> str:  # noqa: ANN401
    """Wait until the text comes up, and return what is there."""
    content = ""
    with anyio.fail_after(PATIENCE_S):
        while wanted not in content:
            await anyio.sleep(0.005)
            [content, *_] = await term.blocks("getContent", **arguments)
    return content


class TestNames:
    async def test_session_that_was_closed_is_gone_with_those_that_had_its_name_before(self, term: Tools) -> None:
        for number in range(3):
            await term.blocks("createSession", name="a", command=f"echo {number}")
            await ended(term, "a")
        assert [row["session"] for row in await term.json("listSessions")] == ["a"]
        assert await shows(term, "2", session="a") == "2"
        await term.blocks("closeSession", session="a")

        assert "Session 'a' not found." in await term.error("getContent", session="a")
        assert await term.json("listSessions") == []

    async def test_sessions_of_earlier_runs_are_told_apart(self, settings: Settings, tmp_path: Path) -> None:
        async with in_process(settings, toolsets="terminal", archive=Archive(tmp_path)) as term:
            for number in range(2):
                await term.blocks("createSession", name="a", command=f"echo {number}")
                await ended(term, "a")
            run = run_of(term)
        later = Archive(tmp_path)
        later.run = "29991231T235959-1"
        async with in_process(settings, toolsets="terminal", archive=later) as term:
            listed = await term.json("listSessions")
            assert [(row["session"], row.get("name")) for row in listed] == [(f"{run}/@1", "a"), (f"{run}/a", None)]
            assert (await term.blocks("getContent", session=f"{run}/a"))[0] == "1"
            assert (await term.blocks("getContent", session=f"{run}/@1"))[0] == "0"

    async def test_name_may_have_a_slash_and_is_told_as_what_it_is(self, term: Tools) -> None:
        await term.blocks("createSession", name="a/b", command="exec cat")
        await term.blocks("closeSession", session="a/b")
        for tool, arguments in (("type", {"text": "x"}), ("getContent", {}), ("takeScreenshot", {})):
            error = await term.error(tool, session="a/b", **arguments)
            assert error.startswith("Session 'a/b' not found.")

    async def test_session_that_has_ended_has_nothing_to_record(self, term: Tools) -> None:
        await term.blocks("createSession", name="a", command="exit 3")
        await ended(term, "a")
        error = await term.error("startRecording", session="a")

        assert error.startswith("Session 'a' has ended (exited with code 3 after ")
        assert error.endswith("Use getContent to read its last output, or createSession to start anew.")

    async def test_screen_of_an_earlier_run_is_what_was_visible(self, settings: Settings, tmp_path: Path) -> None:
        # Of a session that ended in a full-screen program, that program's screen.
        commands = {
            "rows": "seq 1 100; exit",
            "program": "seq 1 9; printf '\\033[?1049h\\033[2J\\033[3;5Hmenu'; exit",
        }
        visible = {}
        async with in_process(settings, toolsets="terminal", archive=Archive(tmp_path)) as term:
            for name, command in commands.items():
                await term.blocks("createSession", name=name, command=command, rows=24)
                await ended(term, name)
                [visible[name]] = await term.blocks("getContent", session=name, visibleOnly=True)
            run = run_of(term)
        async with in_process(settings, toolsets="terminal", archive=Archive(tmp_path)) as term:
            for name, screen in visible.items():
                assert await term.blocks("getContent", session=f"{run}/{name}", visibleOnly=True) == [screen]
            [whole] = await term.blocks("getContent", session=f"{run}/rows")

        assert visible["rows"].split("\n") == [str(number) for number in range(78, 101)]
        assert visible["program"] == "\n\n    menu"
        assert whole.split("\n")[0] == "1"


class TestSizes:
    async def test_programs_have_the_size_when_resize_answers(self, term: Tools) -> None:
        # tmux tells a terminal of no two sizes within a quarter of a second.
        await term.blocks("createSession", name="a", command="bash --norc")
        for columns, rows in ((100, 30), (90, 28), (80, 24)):
            await term.blocks("resize", session="a", cols=columns, rows=rows)
            await term.blocks("type", session="a", text=f"echo {rows}=$(stty size)-\n")
            assert f"\n{rows}={rows} {columns}-" in await shows(term, f"\n{rows}=", session="a")

    async def test_line_that_is_longer_than_a_result_is_cut_and_not_left_out(self, term: Tools) -> None:
        # As JSON that curl prints is.
        await term.blocks("createSession", name="a", command="head -c 60000 /dev/zero | tr '\\0' x; echo; cat")
        await ended_cat(term)
        shown, note = await term.blocks("getContent", session="a")

        assert (set(shown), len(shown)) == ({"x"}, 40_000)
        assert note == "[the last 1 lines; what came before is left out]"


async def ended_cat(term: Tools) -> None:
    with anyio.fail_after(PATIENCE_S):
        while [row.get("foreground") for row in await term.json("listSessions")] != ["cat"]:
            await anyio.sleep(0.005)


class TestKeysByProgram:
    """Home and End are what an xterm sends, but for programs that have switched the keypad on."""

    @pytest.mark.parametrize("editor", EDITORS)
    async def test_line_editors_go_to_the_ends(self, term: Tools, editor: str) -> None:
        await term.blocks("createSession", name="a", command=EDITORS[editor])
        if "zsh" in editor:
            await term.blocks("type", session="a", text=ZSH)
            await anyio.sleep(0.3)
        with anyio.fail_after(PATIENCE_S):
            while not (await term.json("takeScreenshot", session="a"))["content"].strip():
                await anyio.sleep(0.005)
        for text, key in (("bc", "Home"), ("echo a", "End")):
            await term.blocks("type", session="a", text=text)
            await term.blocks("sendKey", session="a", key=key)
        await term.blocks("type", session="a", text="d\n")

        wanted = {"python": "got echo abcd", "an xterm's user": "'bcHOMEecho aENDd"}
        await shows(term, wanted.get(editor, "\nabcd"), session="a")

    async def test_less_knows_them_too(self, term: Tools) -> None:
        await term.blocks("createSession", name="a", command="seq -f 'row %g' 1 500 | less")
        await shows(term, "row 39\n", session="a", visibleOnly=True)
        await term.blocks("sendKey", session="a", key="End")
        await shows(term, "row 500", session="a", visibleOnly=True)
        await term.blocks("sendKey", session="a", key="Home")
        await shows(term, "row 1\n", session="a", visibleOnly=True)

    async def test_dialog_knows_them_too(self, term: Tools) -> None:
        await term.blocks("createSession", name="a", command="dialog --inputbox text 8 40 bc 2>/dev/null")
        await shows(term, "bc", session="a", visibleOnly=True)
        for text, key in (("d", "Home"), ("a", "End")):
            await term.blocks("type", session="a", text=text)
            await term.blocks("sendKey", session="a", key=key)
        await term.blocks("type", session="a", text="e")
        await shows(term, "abcde", session="a", visibleOnly=True)
