"""A wait returns the first thing that happens, and never echo or what was there before."""

import os
import re
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from clocks import FallingClock, with_times
from support import PATIENCE_S, Gate, Tools, eventually, in_process, log_writer, python

from tmux_debug_mcp.panes.looking.activity import ActivityTracker
from tmux_debug_mcp.settings import Settings


async def wait(
    tools: Tools,
    pane_id: str | list[str],
    **arguments: Any,  # noqa: ANN401
) -> tuple[str, Mapping[str, Any], str]:
    """Return the text, what is said of it for programs, and the last line."""
    return await observed(tools, "wait", pane_id=pane_id, **arguments)


async def observed(tools: Tools, tool: str, **arguments: Any) -> tuple[str, Mapping[str, Any], str]:  # noqa: ANN401
    """Return the text of an observation, what is said of it for programs, and the last line."""
    blocks, facts = await tools.answer(tool, **arguments)
    return blocks[-2], facts, blocks[-1]


@asynccontextmanager
async def waiting(tools: Tools, pane_id: str, **arguments: Any) -> AsyncIterator[list[Any]]:  # noqa: ANN401
    """Wait beside the block, at whose end the list has what was observed."""
    results: list[Any] = []

    async def wait_for_it() -> None:
        results.append(await wait(tools, pane_id, **arguments))

    [pane] = [pane for pane in tools.engine.panes if pane.id == pane_id]
    before = pane.subscribers
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_it)
        await eventually(lambda: pane.subscribers > before)
        yield results


async def test_line_that_matches_is_returned_with_what_came_before(
    tools: Tools, gate: Gate
) -> None:
    pane_id = await tools.create(f"echo starting; cat {gate}; echo listening on 8080; sleep 60")
    async with waiting(tools, pane_id, pattern=r"listening on \d+$") as results:
        await gate.open()
    [(text, meta, status)] = results

    assert text == "starting\nlistening on 8080\n"
    assert status.endswith(f"; matched; cursor {meta['cursor']}]")
    assert (meta["reason"], meta["start_cursor"], meta["status"]) == ("matched", 0, "running")


async def test_unfinished_line_matches_to_its_end(tools: Tools) -> None:
    pane_id = await tools.create("printf 'Password: '; cat")

    assert (await wait(tools, pane_id, pattern="^Password: $"))[0] == "Password: "


async def test_create_waits_for_what_its_program_prints(tools: Tools, gate: Gate) -> None:
    command = f"cat {gate}; echo up; sleep 60"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gate.open)
        text, meta, status = await observed(
            tools, "create_pane", command=command, name="server", wait_for="^up$"
        )

    assert (text, meta["reason"], meta["pane_id"]) == ("up\n", "matched", "debug-1")
    assert "; matched; " in status


async def test_line_that_scrolled_away_a_hundred_thousand_lines_ago_is_seen(tools: Tools) -> None:
    program = (
        "import sys; sys.stdin.readline(); "
        'print("NEEDLE\\n" + "x\\n" * 100_000, end="", flush=True); input()'
    )
    pane_id = await tools.create(python(program))
    text, meta, _ = await observed(
        tools, "send_keys", pane_id=pane_id, keys="Enter", wait_for="NEEDLE"
    )

    assert "NEEDLE" in text
    assert len(text) <= 10_000
    assert (await wait(tools, pane_id))[1]["reason"] == "input"
    again, meta, _ = await wait(tools, pane_id, pattern="NEEDLE", since=0, timeout_s=0)
    assert (meta["reason"], "NEEDLE" in again) == ("matched", True)


async def test_death_is_an_answer_with_the_last_output(tools: Tools, gate: Gate) -> None:
    pane_id = await tools.create(f"cat {gate}; echo last words; exit 3")
    async with waiting(tools, pane_id, pattern="never") as results:
        await gate.open()
    [(text, meta, status)] = results

    assert (text, meta["reason"], meta["exit_code"]) == ("last words\n", "exited", 3)
    assert status.startswith("[debug-1 exited with code 3 after ")
    assert (await wait(tools, pane_id, pattern="never"))[1]["reason"] == "exited"


async def test_pattern_in_the_last_line_of_a_dying_program_matches(
    tools: Tools, gate: Gate
) -> None:
    pane_id = await tools.create(f"cat {gate}; printf 'fatal: no more'")
    async with waiting(tools, pane_id, pattern="no more") as results:
        await gate.open()
    [(_, meta, _)] = results

    assert meta["reason"] == "matched"


async def test_kill_of_the_shell_itself_ends_the_wait(tools: Tools) -> None:
    pane_id = await tools.create("sleep 60")
    process = tools.engine.panes[0].leader.pid

    async with waiting(tools, pane_id) as results:
        os.kill(process, signal.SIGKILL)
    [(_, meta, _)] = results

    assert meta["signal"] == "SIGKILL"


async def test_each_end_of_a_wait_has_its_words(tools: Tools) -> None:
    # A capture may show what the log doesn't have yet.
    pane_id = await tools.create("echo error: no port; echo ready; sleep 60", wait_for="ready")
    for arguments, reason, words in (
        ({"pattern": "ready", "stop_pattern": "error|panic"}, "stopped", "stop pattern matched"),
        ({"pattern": "error", "stop_pattern": "ready"}, "matched", "matched"),
        ({"idle_s": 0.5}, "idle", "idle for 0.5 s"),
        ({"pattern": "never", "timeout_s": 0.2}, "timed_out", "timed out after 0.2 s"),
        ({"pattern": "ready", "timeout_s": 0}, "matched", "matched"),
        ({"pattern": "never", "timeout_s": 0}, "timed_out", "timed out after 0 s"),
    ):
        text, meta, status = await wait(tools, pane_id, since=0, **arguments)

        assert (text, meta["reason"]) == ("error: no port\nready\n", reason)
        assert f"; {words}" in status
    [pane] = tools.engine.panes
    assert pane.clock.now() - pane.log.grew_at() >= 0.5


async def test_keys_that_were_sent_begin_the_quiet_anew(tools: Tools) -> None:
    pane_id = await tools.create("stty -echo; echo silent; cat >/dev/null", wait_for="silent")
    [pane] = tools.engine.panes
    await wait(tools, pane_id, idle_s=0.5)
    await tools.send(pane_id, "question Enter")

    assert (await wait(tools, pane_id, idle_s=0.5))[1]["reason"] == "idle"
    assert pane.keyboard.last_sent is not None
    assert time.monotonic() - pane.keyboard.last_sent.at >= 0.5


async def test_timeout_zero_finds_what_the_screen_shows_before_the_log_has_it(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create("echo before; read go; echo ready; sleep 60")
    await tools.shows(pane_id, "before")
    pane = await tools.engine.find(pane_id)
    writer, drain = log_writer(pane), pane.drain

    async def drain_later() -> None:
        os.kill(writer, signal.SIGCONT)
        await drain()

    os.kill(writer, signal.SIGSTOP)
    try:
        await tools.send(pane_id, "Enter")
        await tools.shows(pane_id, "ready")
        monkeypatch.setattr(pane, "drain", drain_later)
        _, facts, _ = await wait(tools, pane_id, pattern="ready", timeout_s=0)
    finally:
        os.kill(writer, signal.SIGCONT)

    assert facts["reason"] == "matched"


@with_times(rest_of_line_s=PATIENCE_S)
async def test_line_that_matches_before_it_is_whole_is_told_whole(tools: Tools, gate: Gate) -> None:
    # As when a terminal hands over what was written in two pieces.
    pane_id = await tools.create(f"printf 'error: no'; cat {gate}; echo ' such file'; sleep 60")
    async with waiting(tools, pane_id, pattern="error: .*") as results:
        await gate.open()
    [(text, meta, _)] = results

    assert (text, meta["reason"]) == ("error: no such file\n", "matched")


async def test_first_of_several_panes_answers(tools: Tools, gate: Gate) -> None:
    slow = await tools.create("echo slow; sleep 60", name="slow")
    fast = await tools.create(f"cat {gate}; echo fast")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gate.open)
        text, meta, status = await wait(tools, ["slow", fast], pattern="fast")

    assert (text, meta["pane_id"]) == ("fast\n", fast)
    assert status.startswith(f"[{fast} ")
    await tools.exited(fast)
    _, facts = await tools.answer(
        "wait", pane_id=[slow, fast, "slow"], pattern="never", timeout_s=0
    )
    assert facts["pane_id"] == fast


async def test_several_panes_where_nothing_happens_all_tell(tools: Tools) -> None:
    first = await tools.create("echo one; sleep 60", wait_for="one")
    second = await tools.create("echo two; sleep 60", wait_for="two")
    blocks = await tools.blocks("wait", pane_id=[first, second], pattern="never", timeout_s=0)

    assert blocks[:2] == ["one\n", "two\n"]
    assert ["timed out after 0 s" in line for line in blocks[2].split("\n")] == [True, True]


@pytest.mark.parametrize("shell", ["bash --norc", "zsh -f", "dash", "fish", "busybox sh", "cat"])
async def test_neither_echo_nor_old_output_matches_and_the_answer_does(
    tools: Tools, shell: str, tmp_path: Path
) -> None:
    pane_id = await tools.create(shell, env={"HOME": str(tmp_path)})
    for number in range(10):
        line = f"printf 'DONE-%d-%d\\n' 42 {number % 2}"
        answer = line if shell == "cat" else f"DONE-42-{number % 2}"
        text, meta, _ = await observed(
            tools,
            "send_keys",
            pane_id=pane_id,
            keys=f"{line} Enter",
            wait_for="DONE",
            timeout_s=PATIENCE_S,
        )
        assert meta["reason"] == "matched", text
        lines = [line.strip() for line in text.splitlines()]
        assert answer in lines[1 if shell == "cat" else 0 :], (number, text)


@pytest.mark.parametrize("rows", [1, 2])
async def test_answer_to_a_command_as_wide_as_the_terminal_is_a_line(
    tools: Tools, rows: int
) -> None:
    pane_id = await tools.create("PS1='$ ' exec bash --norc", size="60x20", wait_for=r"\$ ")
    for width in range(60 * rows - 1, 60 * rows + 2):
        keys = "echo $((41*271)); : ".ljust(width - 2, "x") + " Enter"
        cursor = (await tools.state(pane_id))["cursor"]
        _, facts = await tools.answer("send_keys", pane_id=pane_id, keys=keys, wait_for="^11111$")
        assert facts["reason"] == "matched", width
        read = await tools.blocks("capture_pane", pane_id=pane_id, since=cursor)
        assert "11111" in read[0].split("\n"), width
        steps = [keys.removesuffix(" Enter"), "Enter"]
        _, facts = await tools.answer("send_keys", pane_id=pane_id, keys=steps, wait_for="^11111$")
        assert facts["reason"] == "matched", width


async def test_answer_that_equals_the_keys_matches_and_their_echo_does_not(
    tools: Tools, gate: Gate
) -> None:
    pane_id = await tools.create(f"read -r line; cat {gate}; echo $line; sleep 60")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gate.open)
        text, meta, _ = await observed(
            tools, "send_keys", pane_id=pane_id, keys="hello Enter", wait_for="^hello$"
        )

    assert (text.split(), meta["reason"]) == (["hello", "hello"], "matched")


async def test_answer_to_keys_that_are_not_echoed_matches(tools: Tools, gate: Gate) -> None:
    command = f"read -s secret; cat {gate}; echo $secret; sleep 60"
    pane_id = await tools.create(command, timeout_s=PATIENCE_S)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gate.open)
        text, meta, _ = await observed(
            tools, "send_keys", pane_id=pane_id, keys="hunter2 Enter", wait_for="hunter2"
        )

    assert (text, meta["reason"]) == (
        "\nhunter2\n" if text.startswith("\n") else "hunter2\n",
        "matched",
    )


async def test_prompt_comes_back_after_the_command_and_not_before(tools: Tools, gate: Gate) -> None:
    pane_id = await tools.create("bash --norc", wait_for=r"[$#] $")
    keys = f"cat {gate}; echo finished Enter"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(gate.open)
        text, meta, _ = await observed(
            tools, "send_keys", pane_id=pane_id, keys=keys, wait_for=r"[$#] $"
        )

    assert (meta["reason"], "finished\n" in text) == ("matched", True)


@pytest.mark.parametrize("shell", ["bash --norc", "zsh -f", "fish"])
async def test_what_was_typed_ahead_is_echo_where_the_shell_shows_it_again(
    tools: Tools, shell: str, tmp_path: Path, gate: Gate
) -> None:
    pane_id = await tools.create(shell, env={"HOME": str(tmp_path)}, wait_for=r"[$#%>] $")
    [pane] = tools.engine.panes
    answer = Gate(tmp_path / "answer")
    await tools.send(pane_id, f"cat {gate} Enter")
    await tools.shows_foreground(pane_id, "cat")

    async def go_on() -> None:
        await eventually(lambda: b"echo AHEAD\r\n" in pane.log.read(0, pane.log.size))
        await gate.open()
        await answer.open()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go_on)
        keys = f"cat {answer}; echo AHEAD Enter"
        text, meta, _ = await observed(
            tools, "send_keys", pane_id=pane_id, keys=keys, wait_for="AHEAD"
        )

    assert (meta["reason"], "\nAHEAD\n" in text) == ("matched", True), text


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*){1,30}[bc]", "a" * 1000])
async def test_no_pattern_hangs_the_server(tools: Tools, pattern: str) -> None:
    pane_id = await tools.create(f"echo {'a' * 5000}; sleep 60")
    other = await tools.create("echo other; sleep 60")
    await wait(tools, pane_id, pattern=pattern, timeout_s=0.2)

    assert await tools.shows(other, "other")


BAD_CONDITIONS: list[tuple[dict[str, Any], str]] = [
    (
        {"pattern": "("},
        "Parameter 'pattern' is not an RE2 regular expression (missing ): (). Escape",
    ),
    (
        {"pattern": "a)(b"},
        "Parameter 'pattern' is not an RE2 regular expression (unexpected ): ",
    ),
    (
        {"stop_pattern": "(?=x)"},
        "Parameter 'stop_pattern' is not an RE2 regular expression (invalid",
    ),
    (
        {"pattern": "x{9999}"},
        "Parameter 'pattern' is not an RE2 regular expression (invalid repetition size",
    ),
    (
        {"pattern": "x" * 1001},
        "Parameter 'pattern' has 1001 characters; the limit is 1000. Give a shorter one.",
    ),
    (
        {"pattern": "ready\\n"},
        "Parameter 'pattern' is matched line by line, so it never matches a line feed (\\n). Use",
    ),
    (
        {"timeout_s": 3601},
        "Parameter 'timeout_s' is 3601. It must be a number of at least 0 and at most 3600.",
    ),
    (
        {"timeout_s": -1},
        "Parameter 'timeout_s' is -1. It must be a number of at least 0 and at most 3600.",
    ),
    ({"since": 10_000}, "Parameter 'since' is 10000, but the pane's cursor is "),
    (
        {"pane_id": 5},
        "Parameter 'pane_id' is 5. It must be a string or an array of 1 to 64",
    ),
    ({"pane_id": []}, "Parameter 'pane_id' is []. It must be a string"),
    ({"pane_id": ["debug-1", "nope"]}, "Pane 'nope' not found."),
    (
        {"pane_id": ["debug-1", "debug-2"], "since": 0},
        "Parameter 'since' is for one pane.",
    ),
]


async def test_bad_conditions_are_errors_that_say_what_to_do(tools: Tools) -> None:
    await tools.create("sleep 60")

    for arguments, error in BAD_CONDITIONS:
        assert (await tools.error("wait", **{"pane_id": "debug-1"} | arguments)).startswith(error)


async def test_wait_for_that_is_no_pattern_is_told_before_anything_is_done(tools: Tools) -> None:
    assert "is not an RE2 regular expression" in await tools.error(
        "create_pane", command="cat", wait_for="("
    )
    assert tools.engine.panes == []
    pane_id = await tools.create("cat")
    assert "is not an RE2 regular expression" in await tools.error(
        "send_keys", pane_id=pane_id, keys="x", wait_for="("
    )
    assert await tools.capture(pane_id) == ""


async def test_flood_faster_than_it_can_be_kept_tells_what_was_not_seen(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmux_debug_mcp.logs.retention.MAX_LOG_BYTES", 1 << 20)
    pane_id = await tools.create(
        "yes 0123456789012345678901234567890 | head -c 2000000; echo THE END; sleep 60"
    )
    await tools.shows(pane_id, "THE END", lines=1)
    tools.engine._retention.trim()
    kept_from = tools.engine.panes[0].log.kept_from
    _, meta, status = await wait(tools, pane_id, pattern="THE END")

    assert (meta["reason"], kept_from > 0) == ("matched", True)
    # What is left of the line there is not matched, either.
    passed = re.search("; ([0-9]+) bytes passed too fast to be matched; ", status)
    assert passed
    assert kept_from <= int(passed[1]) <= kept_from + len("0123456789012345678901234567890\r\n")


async def test_flood_beside_a_wait_for_it_is_waited_for_to_its_end(tools: Tools) -> None:
    pane_id = await tools.create(
        "yes 0123456789012345678901234567890 | head -c 5000000; echo THE END; sleep 60"
    )
    _, facts, _ = await wait(tools, pane_id, pattern="THE END", timeout_s=PATIENCE_S)

    assert facts["reason"] == "matched"


async def test_observation_is_cut_in_the_middle_and_says_so(tools: Tools) -> None:
    pane_id = await tools.create("seq 1 20000; sleep 60")
    text, meta, status = await wait(tools, pane_id, pattern="^20000$")

    assert 3_900 < len(text) <= 4_000
    assert text.startswith("1\n2\n3\n")
    assert text.endswith("20000\n")
    [marked] = meta["marked_lines"]
    lines = text.split("\n")
    first_left_out, last_left_out = int(lines[marked - 1]) + 1, int(lines[marked + 1]) - 1
    cursor = sum(len(f"{number}\r\n") for number in range(1, first_left_out))
    count = last_left_out - first_left_out + 1
    assert lines[marked] == (
        f"[{count:,} lines left out: tmux_capture_pane since {cursor}, lines {count}]"
    )
    assert [line for line in lines if line and not line.startswith("[")] == [
        str(number) for number in range(1, 20_001) if not first_left_out <= number <= last_left_out
    ]
    assert "left out" not in status


async def test_cancelled_wait_leaves_the_pane_alone(tools: Tools) -> None:
    pane_id = await tools.create("cat")
    with anyio.move_on_after(0.2):
        await tools.client.call_tool("tmux_wait", {"pane_id": pane_id, "pattern": "never"})

    assert (await tools.state(pane_id))["status"] == "running"


async def test_wait_goes_on_where_notification_of_growth_is_not_to_be_had(
    settings: Settings, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmux_debug_mcp.linux.files.open_inotify", lambda: -1)
    async with in_process(settings) as tools:
        pane_id = await tools.create(f"cat {gate}; echo ready; sleep 60")
        async with waiting(tools, pane_id, pattern="ready") as results:
            await gate.open()
        [(_, meta, _)] = results
        assert meta["reason"] == "matched"


@with_times(progress_s=0.05)
async def test_client_that_asks_for_progress_hears_that_the_call_is_at_work(
    tools: Tools, gate: Gate
) -> None:
    heard = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))
        if len(heard) == 4:
            await gate.open()

    pane_id = await tools.create(f"cat {gate}")
    await tools.client.call_tool("tmux_wait", {"pane_id": pane_id}, progress_callback=hear)

    assert len(heard) >= 4
    assert heard[0] == (0, None, "0 s")


async def test_kill_of_the_pane_answers_the_wait_with_its_output(tools: Tools) -> None:
    pane_id = await tools.create("echo hello; cat", wait_for="hello")
    log = tools.engine.panes[0].log
    async with waiting(tools, pane_id, pattern="never", since=0) as results:
        await tools.blocks("kill_pane", pane_id=pane_id)
    [(text, meta, status)] = results

    assert (text, meta["reason"], meta["signal"]) == ("hello\n", "exited", "SIGHUP")
    assert "killed by SIGHUP" in status
    assert log.is_closed


async def test_death_of_tmux_answers_the_wait(tools: Tools) -> None:
    pane_id = await tools.create("echo hello; cat", wait_for="hello")
    server = tools.engine.panes[0].client.server_pid
    async with waiting(tools, pane_id, pattern="never", since=0) as results:
        os.kill(server, signal.SIGKILL)
    [(_, meta, _)] = results

    assert (meta["reason"], meta["status"]) == ("exited", "exited")


@pytest.mark.parametrize("shell", ["bash --norc", "zsh -f", "fish --no-config"])
async def test_line_that_is_recalled_does_not_match_and_its_answer_does(
    tools: Tools, shell: str, gate: Gate
) -> None:
    pane_id = await tools.create(shell)
    for keys, pattern in (
        (f"cat {gate}; echo foo''bar Enter", "^foobar$"),
        ("Up Enter", "foo.*bar"),
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gate.open)
            text, meta, _ = await observed(
                tools, "send_keys", pane_id=pane_id, keys=keys, wait_for=pattern
            )

    assert (meta["reason"], "\nfoobar\n" in text) == ("matched", True), text


@with_times(quiet_s=PATIENCE_S)  # else a wait at a quiet prompt is in vain
async def test_keys_that_are_sent_during_a_wait_do_not_match(tools: Tools, gate: Gate) -> None:
    pane_id = await tools.create("bash --norc", wait_for="[$#] $")
    async with waiting(tools, pane_id, pattern="foo.*bar") as results:
        await tools.send(pane_id, f"cat {gate}; echo foo''bar")
        await tools.shows(pane_id, "echo foo''bar")
        await tools.send(pane_id, "Enter")
        await gate.open()
    [(text, meta, _)] = results

    assert (meta["reason"], "\nfoobar" in text) == ("matched", True), text


async def test_line_that_a_run_types_does_not_match(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc", wait_for="[$#] $")
    since = tools.engine.panes[0].log.size
    await tools.call("run", pane_id=pane_id, command=": pingpong")

    assert (await wait(tools, pane_id, pattern="pingpong", since=since, timeout_s=0))[1][
        "reason"
    ] == "timed_out"


async def test_line_without_end_is_looked_at_in_time(tools: Tools) -> None:
    pane_id = await tools.create(
        "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo THE END; sleep 60"
    )
    await wait(tools, pane_id, pattern="never", timeout_s=0.5)

    assert (await wait(tools, pane_id, pattern="THE END"))[1]["reason"] == "matched"


async def test_pane_that_is_lost_during_a_look_is_an_answer(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane_id = await tools.create("cat")
    pane = tools.engine.panes[0]
    flush = pane.terminal._flush
    # So that two looks are needed, with a flush in between.
    pane.terminal._last, pane.terminal._tracker = None, ActivityTracker(pane.clock.times)

    async def lose_tmux() -> None:
        assert tools.engine.host.client is not None
        os.kill(tools.engine.host.client.server_pid, signal.SIGKILL)
        await flush()

    monkeypatch.setattr(pane.terminal, "_flush", lose_tmux)
    blocks = await tools.blocks("wait", pane_id=pane_id)

    assert "was lost after" in blocks[-1]


@pytest.mark.parametrize("clock", [FallingClock()], ids=["falling"])
async def test_echo_does_not_match_where_the_clock_is_set_back(
    tools: Tools, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    pane_id = await tools.create(f"read x; read y; read z <{gate}; echo second answered; cat")
    [pane] = tools.engine.panes
    await tools.send(pane_id, "first Enter")

    answers: list[str] = []

    async def send() -> None:
        blocks = await tools.send(pane_id, "second Enter", wait_for="second")
        answers.extend(blocks)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        await eventually(lambda: b"second\r\n" in pane.log.read(0, pane.log.size))
        await anyio.Path(gate).write_text("open\n")

    assert "second answered" in answers[1]


@pytest.mark.parametrize("clock", [FallingClock()], ids=["falling"])
async def test_pane_that_is_quiet_is_idle_where_the_clock_is_set_back(tools: Tools) -> None:
    pane_id = await tools.create("echo hello; exec sleep 1001")
    await tools.shows(pane_id, "hello")

    assert (await wait(tools, pane_id, idle_s=0.1))[1]["reason"] == "idle"


async def test_line_that_matches_amid_a_burst_is_shown(tools: Tools) -> None:
    line = "line {:05} of a log whose lines are rather long, as here"
    program = f"for n in range(3000): print('ERROR in ' * (n == 72) + {line!r}.format(n))"
    pane_id = await tools.create(python(program))
    await tools.exited(pane_id)
    text, status = await tools.blocks("wait", pane_id=pane_id, pattern="ERROR", since=0)
    assert text.endswith(f"\n{line.format(71)}\nERROR in {line.format(72)}\n")
    assert "; matched" in status

    cursor = int(status.rpartition("cursor ")[2].rstrip("]"))
    rest = (await tools.blocks("capture_pane", pane_id=pane_id, since=cursor))[0]
    assert rest.startswith(f"{line.format(73)}\n")
