"""What a terminal session shows: content, cursor and scrollback, and clearing them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from support import python, run_of
from toolsets import Terminal, open_terminal

from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tools.arguments import MAX_TEXT_CHARACTERS


@pytest.fixture
async def at_root(settings: Settings) -> AsyncIterator[Terminal]:
    """Serve where the prompts of shells, which may have the directory in them, are short."""
    async with open_terminal(replace(settings, cwd=Path("/"))) as term:
        yield term


async def test_default_session_is_a_shell_of_120_by_40_and_shows_its_prompt_at_once(
    at_root: Terminal,
) -> None:
    first = await at_root.shot()
    assert first["dimensions"] == {"cols": 120, "rows": 40}
    assert first["cursor"]["y"] == 0
    assert first["cursor"]["x"] > len(first["content"]) - 1 > 0

    await at_root.text("type", text="stty size\n")
    assert "\n40 120\n" in await at_root.shows("\n40 120\n")


async def test_content_has_the_scrollback_and_visible_only_has_not(at_root: Terminal) -> None:
    await at_root.text("type", text="seq 1 300\n")
    await at_root.shows("\n300\n")
    everything = await at_root.text("getContent")
    visible = await at_root.text("getContent", visibleOnly=True)

    assert "\n1\n2\n3\n" in everything
    assert "\n1\n" not in visible
    assert visible.startswith("262\n")
    assert everything.endswith(visible)


async def test_session_that_has_shown_nothing_is_said_to_be_empty(term: Terminal) -> None:
    await term.text("createSession", name="silent", command="sleep 99")
    assert await term.text("getContent", session="silent") == "(empty terminal)"
    assert (await term.shot(session="silent"))["content"] == ""


async def test_long_content_keeps_its_end_and_says_so(term: Terminal) -> None:
    command = python("for i in range(900): print(i, 'x' * 100)")
    await term.text("createSession", name="long", command=f"{command}; sleep 99")
    await term.shows("899 x", session="long")
    shown, note = await term.blocks("getContent", session="long")

    assert MAX_TEXT_CHARACTERS - 110 < len(shown) <= MAX_TEXT_CHARACTERS
    assert shown.endswith("x")
    assert shown.startswith(f"{899 - shown.count(chr(10))} x")
    assert note == f"[the last {shown.count(chr(10)) + 1} lines; earlier ones are left out]"


@pytest.mark.parametrize(("lines", "is_cut"), [(999, False), (1000, False), (1001, True)])
async def test_lines_are_said_to_be_left_out_only_if_some_are(
    term: Terminal, lines: int, *, is_cut: bool
) -> None:
    await term.text("createSession", name="n", command=f"seq 1 {lines}; sleep 99")
    await term.shows(str(lines), session="n")
    shown, *notes = await term.blocks("getContent", session="n")

    assert list(map(int, shown.split("\n"))) == list(range(max(1, lines - 999), lines + 1))
    assert notes == ["[the last 1000 lines; earlier ones are left out]"] * is_cut


async def test_content_of_an_earlier_run_is_said_to_be_cut(
    settings: Settings, tmp_path: Path
) -> None:
    async with open_terminal(settings, Archive(tmp_path)) as term:
        await term.text("createSession", name="n", command="seq -f %0100.0f 1 900; sleep 99")
        await term.shows("900", session="n")
        run = run_of(term)
    later = Archive(tmp_path)
    later.run = "20990101T000000-1"
    async with open_terminal(settings, later) as term:
        shown, note = await term.blocks("getContent", session=f"{run}/n")
    assert shown.endswith("900")
    assert note == f"[the last {shown.count(chr(10)) + 1} lines; earlier ones are left out]"


async def test_cursor_is_where_the_program_put_it(term: Terminal) -> None:
    await term.text(
        "createSession", name="c", command=r"printf '\033[2J\033[7;21Hhere\033[3;5H'; sleep 99"
    )
    await term.shows("here", session="c")
    result = await term.shot(session="c")

    assert result["cursor"] == {"x": 4, "y": 2}
    assert result["content"].split("\n")[6] == " " * 20 + "here"


async def test_clear_leaves_a_prompt_and_no_scrollback(term: Terminal) -> None:
    for shell in ("bash --norc", "zsh -f", "fish --no-config", "dash"):
        name = shell.split()[0]
        await term.text("createSession", name=name, command=shell)
        await term.text("type", text="seq 1 99\n", session=name)
        await term.shows("\n99\n", session=name)
        assert await term.text("clear", session=name) == "Terminal cleared"
        content = await term.shows(
            lambda content: "99" not in content.split() and content != "", session=name
        )
        assert len(content.strip().split("\n")) == 1
        assert "99" not in (await term.text("getContent", session=name)).split()
        await term.text("type", text="expr 6 '*' 7\n", session=name)
        await term.shows("\n42", session=name)


async def test_clear_while_a_program_runs_types_nothing_into_it(term: Terminal) -> None:
    await term.text("createSession", name="c", command="echo old; exec cat")
    await term.shows("old", session="c")
    await term.shows_foreground("c", "cat")
    await term.text("clear", session="c")
    assert await term.text("getContent", session="c") == "(empty terminal)"
    await term.text("type", text="new\n", session="c")
    assert await term.shows("new\nnew", session="c") == "new\nnew"


async def test_line_that_is_longer_than_a_result_is_cut_and_not_left_out(term: Terminal) -> None:
    # As JSON that curl prints is.
    await term.blocks(
        "createSession", name="a", command="head -c 60000 /dev/zero | tr '\\0' x; echo; cat"
    )
    await term.shows_foreground("a", "cat")
    shown, note = await term.blocks("getContent", session="a")

    assert (set(shown), len(shown)) == ({"x"}, 40_000)
    assert note == "[the last 1 lines; earlier ones are left out]"
