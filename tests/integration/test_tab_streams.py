"""A tab's log in chunks: stream_logs_from_tab (spec 000, phase 5)."""

from pathlib import Path

from support import Gate, eventually, run_of
from toolsets import Tabs, open_tabs

from tmux_debug_mcp.logs.archive import Archive
from tmux_debug_mcp.settings import Settings


async def test_chunks_in_a_row_are_the_log_without_gaps(tabs: Tabs, tab: str) -> None:
    # Byte for byte what the terminal got, at any size of chunks, and no character is split.
    await tabs.ends_with(tab, "for i in $(seq 60); do printf '%s é 日本 😀\\n' $i; done")
    log = tabs.engine.panes[0].log
    for max_bytes in (1, 2, 3, 7, 100, 4096):
        text, at, is_end = "", 0, False
        while not is_end:
            chunk = await tabs.json(
                "stream_logs_from_tab", window_id=tab, from_byte=at, max_bytes=max_bytes
            )
            assert len(chunk["chunk"].encode()) == chunk["next_byte"] - at <= max(max_bytes, 4)
            assert "\ufffd" not in chunk["chunk"]
            text, at, is_end = text + chunk["chunk"], chunk["next_byte"], chunk["eof"]
            if max_bytes < 7 and at > 150:
                break
        assert text.encode() == log.read(0, at)
    assert at == log.size


async def test_clean_chunks_in_a_row_are_the_clean_log(tabs: Tabs, tab: str) -> None:
    # Also where a chunk ends amid an escape sequence.
    await tabs.ends_with(
        tab, r"for i in $(seq 30); do printf '\033[38;5;%dmline %d\033[0m\n' $i $i; done"
    )
    clean = (await tabs.read(tab, strip_ansi=True))["content"]
    for max_bytes in (1, 10, 64, 1000):
        text, at, is_end = "", 0, False
        while not is_end:
            chunk = await tabs.json(
                "stream_logs_from_tab",
                window_id=tab,
                from_byte=at,
                max_bytes=max_bytes,
                strip_ansi=True,
            )
            text, at, is_end = text + chunk["chunk"], chunk["next_byte"], chunk["eof"]
        assert text.rstrip("\n").split("\n")[-32:] == clean.rstrip("\n").split("\n")[-32:]


async def test_clean_chunks_have_commands_and_not_what_was_typed_for_them(
    tabs: Tabs, tab: str
) -> None:
    for command in ("echo first", "true", "echo second"):
        await tabs.execute(tab, command)
    await tabs.ends_with(tab, "true")

    for max_bytes in (1, 10, 64, 100, 1000):
        text, _ = await tabs.stream(tab, max_bytes=max_bytes, strip_ansi=True)

        lines = text.split("\n")
        commands = [line.partition("# ")[2] or line.partition("$ ")[2] for line in lines]
        assert [one for one in commands if one][:3] == ["echo first", "true", "echo second"]
        assert "tmux-debug-mcp" not in text


async def test_smaller_offset_reads_again(tabs: Tabs, tab: str) -> None:
    # Backwards seeking: offsets are absolute, and reading takes nothing away.
    await tabs.ends_with(tab, "echo one; echo two")
    first = await tabs.json("stream_logs_from_tab", window_id=tab)
    assert await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=0) == first
    at = first["chunk"].encode().index(b"two\r\n")

    assert (await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=at, max_bytes=3))[
        "chunk"
    ] == "two"


async def test_end_is_told_and_goes_on_when_more_comes(tabs: Tabs, tab: str) -> None:
    # eof is the end for now; next_byte is where to look for more.
    await tabs.json(
        "start_process",
        window_id=tab,
        command="stty -echo; echo o-$((1)); read x; echo $x; exec sleep 99",
    )
    await tabs.shows(tab, "\no-1")
    whole = await tabs.json("stream_logs_from_tab", window_id=tab)
    assert whole["eof"]
    at = whole["next_byte"]
    again = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=at)
    assert again == {"chunk": "", "next_byte": at, "eof": True}

    await tabs.json("start_process", window_id=tab, command="more-of-it")
    await tabs.shows(tab, "more-of-it")
    later = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=at, max_bytes=6)
    assert later == {"chunk": "more-o", "next_byte": at + 6, "eof": False}
    last = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=at + 6)
    assert last == {"chunk": "f-it\r\n", "next_byte": at + 12, "eof": True}


async def test_default_chunk_is_64_kib_and_a_megabyte_the_most(tabs: Tabs, tab: str) -> None:
    # A log of gigabytes is read in pieces that fit into memory and context.
    await tabs.execute(tab, "seq 1 300000", timeout_ms=30_000)
    assert (await tabs.json("stream_logs_from_tab", window_id=tab))["next_byte"] == 65_536
    arguments = {"window_id": tab, "max_bytes": 1 << 20}
    assert (await tabs.json("stream_logs_from_tab", **arguments))["next_byte"] == 1 << 20
    error = await tabs.error("stream_logs_from_tab", window_id=tab, max_bytes=(1 << 20) + 1)
    assert "at most 1048576" in error


async def test_offset_beyond_the_end_is_an_error_with_the_end(tabs: Tabs, tab: str) -> None:
    # An offset of another tab is a mistake that should not read as "nothing new".
    await tabs.ends_with(tab, "true")
    size = tabs.engine.panes[0].log.size
    error = await tabs.error("stream_logs_from_tab", window_id=tab, from_byte=size + 1)
    assert error == (
        f"Parameter 'from_byte' is {size + 1}, but the log has {size} bytes. Give at most {size}."
    )


async def test_character_that_is_coming_is_held_back_and_one_that_never_came_is_told(
    tabs: Tabs, tab: str
) -> None:
    # Half a character now would be two wrong ones; at the program's end it stays half.
    await tabs.json(
        "start_process", window_id=tab, command=r"stty -echo; clear; printf 'x\303'; exec sleep 50"
    )
    log = tabs.engine.panes[0].log
    await eventually(lambda: log.read(log.size - 2, 2) == b"x\303")
    size = log.size
    chunk = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=size - 2)
    assert chunk == {"chunk": "x", "next_byte": size - 1, "eof": True}

    assert (await tabs.json("stop_process", window_id=tab, signal="SIGTERM"))["success"]
    await tabs.exited(tab)
    chunk = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=size - 2)
    assert chunk == {"chunk": "x\ufffd", "next_byte": size, "eof": True}


async def test_clean_streams_have_each_line_once_also_around_full_screen_programs(
    tabs: Tabs, tab: str, gate: Gate
) -> None:
    # Read while the program is on the screen, and after it. Chunks of any size come to an end.
    draw, leave = "printf '\\033[?1049h\\033[2J\\033[Hmenu'", "printf '\\033[?1049l'"
    command = f"seq 1001 1030; {draw}; cat {gate}; {leave}; seq 2001 2009"
    await tabs.json("start_process", window_id=tab, command=command)
    await tabs.shows(tab, "menu")
    sizes = (10, 33, 100, 4096, 65_536)
    texts = [await tabs.stream(tab, max_bytes=size, strip_ansi=True) for size in sizes]
    await gate.open()
    await tabs.shows(tab, "\n2009\n")
    for size, (text, at) in zip(sizes, texts, strict=True):
        more, _ = await tabs.stream(tab, at, max_bytes=size, strip_ansi=True)

        lines = (text + more).split("\n")
        assert [line for line in lines if line.isdigit()] == [
            *map(str, range(1001, 1031)),
            *map(str, range(2001, 2010)),
        ]


async def test_streams_have_no_marks_of_ours_wherever_chunks_end(tabs: Tabs, tab: str) -> None:
    # Chunks of all sizes add up to the same, which is what the terminal got but for the marks.
    for number in range(2):
        await tabs.output(tab, f"echo {number} é")
    await tabs.json("execute_command", window_id=tab, command="exit")
    wholes = set()
    for size in (1, 2, 7, 30, 50, 100, 65_536):
        text, at = await tabs.stream(tab, max_bytes=size)
        wholes.add(text)
    [whole] = wholes
    assert "]7777;" not in whole
    for start in range(0, at, 3):
        chunk = await tabs.json("stream_logs_from_tab", window_id=tab, from_byte=start)
        assert "]777" not in chunk["chunk"]


async def test_tab_of_a_server_that_runs_is_streamed_in_whole_characters(
    settings: Settings, tabs: Tabs, tab: str, tmp_path: Path
) -> None:
    run = run_of(tabs)
    async with open_tabs(settings, Archive(tmp_path / "logs")) as others:
        await tabs.json("start_process", window_id=tab, command=r"printf 'half\xe2\x82'; sleep 99")
        await tabs.shows(tab, "\nhalf")
        log = tmp_path / "logs" / run / "debug-1.log"
        await eventually(lambda: log.read_bytes().endswith(b"half\xe2\x82"))
        first = await others.json("stream_logs_from_tab", window_id=f"{run}/{tab}")
        assert (first["chunk"][-4:], first["next_byte"]) == ("half", log.stat().st_size - 2)
