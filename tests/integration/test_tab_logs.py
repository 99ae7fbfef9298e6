"""The last lines of a tab's log: read_logs_from_tab (spec 000, phase 2)."""

import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support import until
from toolsets import NOISE, Tabs, open_tabs

from tmux_debug_mcp.settings import Settings


async def test_last_lines_of_a_noisy_process_are_exact(tabs: Tabs, tab: str) -> None:
    # Whole lines in a row, while more of them come: a log is read without stopping what writes it.
    # The first of them come at once.
    noise = NOISE.replace("time.sleep", "number > 5_100 and time.sleep")
    await tabs.json("start_process", window_id=tab, command=noise)
    await until(
        partial(tabs.read, tab, strip_ansi=True),
        lambda result: (
            int(["0", *re.findall("^line ([0-9]+)", result["content"], re.MULTILINE)][-1]) > 5_100
        ),
    )
    for lines in (200, 1000, 5000):
        result = await tabs.read(tab, lines=lines, strip_ansi=True)
        numbers = [
            int(line.removeprefix("line ")) for line in result["content"].split("\n") if line[5:]
        ]
        first = numbers[0]
        assert numbers == list(range(first, first + len(numbers)))
        assert result["returned_lines"] == lines
        assert len(numbers) >= lines - 1  # the last one may just be coming
        assert result["truncated"]


async def test_strip_ansi_removes_escape_sequences_and_else_they_stay(tabs: Tabs, tab: str) -> None:
    # Agents want text, and people who replay a log its colours; the specification has the default.
    await tabs.execute(tab, r"echo; printf '\033[1;31mred\033[0m \033]0;title\007plain\n'")
    for arguments in ({}, {"strip_ansi": False}, {"strip_ansi": True}):
        lines = (await tabs.read(tab, **arguments))["content"].split("\n")
        is_stripped = arguments == {"strip_ansi": True}
        assert ("red plain" in lines) == is_stripped
        assert ("\033[1;31mred\033[0m \033]0;title\007plain" in lines) != is_stripped


async def test_truncated_tells_whether_there_were_more_lines(tabs: Tabs, tab: str) -> None:
    # So that an agent knows whether it has seen the beginning.
    await tabs.ends_with(tab, "seq 1 20")
    everything = await tabs.read(tab)
    assert not everything["truncated"]
    total = everything["returned_lines"]

    assert not (await tabs.read(tab, lines=total))["truncated"]
    assert (await tabs.read(tab, lines=total - 1))["truncated"]
    assert (await tabs.read(tab, lines=total - 1, strip_ansi=True))["truncated"]
    assert not (await tabs.read(tab, lines=total, strip_ansi=True))["truncated"]


async def test_default_is_500_lines(tabs: Tabs, tab: str) -> None:
    # The specification's default.
    await tabs.execute(tab, "seq 1 600")
    assert (await tabs.read(tab))["returned_lines"] == 500


async def test_large_log_is_read_from_its_end_and_bounded(tabs: Tabs, tab: str) -> None:
    # Neither a line of megabytes nor a log of many is read or returned whole; the result says so.
    await tabs.execute(
        tab, "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo END", timeout_ms=20_000
    )
    for strip in (False, True):
        result = await tabs.read(tab, lines=3, strip_ansi=strip)
        assert "END" in result["content"]
        assert len(result["content"]) <= 400_000
        assert result["truncated"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash", "fish"])
async def test_log_shows_the_command_where_a_line_that_reads_it_was_typed(
    settings: Settings, shell: str
) -> None:
    # What a person who reads the log wants to know is what was run.
    env = {**settings.env, "SHELL": shutil.which(shell) or "it is missing"}
    async with open_tabs(replace(settings, env=env)) as tabs:
        tab = await tabs.new()
        await tabs.output(tab, "echo one\necho é")
        content = (await tabs.read(tab, strip_ansi=True))["content"]
        chunk = await tabs.json("stream_logs_from_tab", window_id=tab, strip_ansi=True)
        raw = (await tabs.read(tab))["content"]

    shown = [line.rstrip() for line in content.split("\n")]
    at = next(number for number, line in enumerate(shown) if line.endswith("echo one ⏎ echo é"))
    assert shown[at + 1 : at + 3] == ["one", "é"]
    assert "tmux-debug-mcp-" not in chunk["chunk"] + content
    assert "]7777;" not in raw


async def test_raw_logs_hold_what_the_descriptions_say(tabs: Tabs, tab: str) -> None:
    await tabs.execute(tab, "echo raw")
    read = (await tabs.read(tab))["content"]
    streamed, _ = await tabs.stream(tab)

    assert re.search(r"echo raw\n(\S*\r)?raw(\n|$)", read)  # the prompt may be still to come
    assert "tmux-debug-mcp-" not in read
    assert re.search(r"/tmux-debug-mcp-\S*\r\n(\S*\r)?raw\r\n", streamed)
    assert "echo raw" not in streamed


async def test_markers_of_ours_are_in_no_line(tabs: Tabs, tab: str) -> None:
    # What tells us where a command's output begins and ends is not the program's text.
    await tabs.execute(tab, "echo one")
    await tabs.execute(tab, "exit 3")
    for strip in (False, True):
        assert "]7777;" not in (await tabs.read(tab, strip_ansi=strip))["content"]


async def test_log_directory_that_somebody_removes_is_made_again(
    tabs: Tabs, tab: str, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "logs")
    assert set(await tabs.rows()) == {tab}
    assert await tabs.output(tab, "echo still here") == "still here\n"
    other = await tabs.new()
    assert await tabs.output(other, "echo kept") == "kept\n"
    assert [path.name for path in (tmp_path / "logs").glob("*/*.log")] == ["debug-2.log"]
