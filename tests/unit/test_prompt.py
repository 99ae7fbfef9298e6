"""How long it takes to find a prompt, in virtual time, from looks that are made up."""

import itertools
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from clocks import VirtualClock
from staging import BLOCKED, PROMPT, StagedPane

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.linux.processes import Stat
from tmux_debug_mcp.linux.waits import OutsideReaders
from tmux_debug_mcp.panes import prompts
from tmux_debug_mcp.panes.looking import pane_terminal as terminal_module
from tmux_debug_mcp.panes.looking.pane_terminal import Terminal
from tmux_debug_mcp.panes.prompts import AtPrompt, prompt
from tmux_debug_mcp.panes.shells.dialects import Shell

BASH = PROMPT.shell


class Room:
    """A pane in which a shell waits, as `seen` says."""

    def __init__(self, directory: Path, clock: VirtualClock) -> None:
        self.clock = clock
        self.pane = StagedPane(directory, clock)
        self.seen = PROMPT
        self.flushes = 0
        self.begin_terminal(processes.gone(7))

    def begin_terminal(self, leader: Stat) -> None:
        log, outside = self.pane.log, OutsideReaders()
        self.terminal = Terminal(leader, log, self.clock, self.flush, list, outside)
        self.pane.terminal = self.terminal

    async def flush(self) -> None:
        self.flushes += 1

    async def prompt(self, *, is_sure: bool = True) -> tuple[Shell | None, int, float]:
        """Return the shell at its prompt, and what it took: flushes, and seconds."""
        flushes, begin = self.flushes, self.clock.now()
        async with self.clock.jumping():
            rule = AtPrompt(self.pane, self.clock.times.prompt_soon_s)
            shell = await prompt(rule, is_sure=is_sure)
        return shell, self.flushes - flushes, self.clock.now() - begin


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    clock = VirtualClock()
    room = Room(tmp_path, clock)
    monkeypatch.setattr(terminal_module, "look", lambda *_: room.seen)
    monkeypatch.setattr(prompts, "foreground_shell", lambda _: BASH)
    yield room
    room.pane.close()


async def test_one_look_confirms_nothing_however_slow_the_machine_is(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a second passes before each look at the clock."""
    now = room.clock.now
    seconds = itertools.count()
    monkeypatch.setattr(room.clock, "now", lambda: now() + next(seconds))

    assert (await room.prompt())[:2] == (BASH, 1)


async def test_wait_that_was_seen_before_needs_no_second_look(room: Room) -> None:
    confirm_s = room.clock.times.confirm_s

    assert await room.prompt() == (BASH, 1, confirm_s)
    assert await room.prompt() == (BASH, 0, 0.0)

    room.seen = replace(room.seen, reader_ns=1)  # it has run meanwhile
    assert await room.prompt() == (BASH, 1, confirm_s)


async def test_wait_that_one_look_has_shown_counts_when_tmux_has_read_what_was_before(
    room: Room,
) -> None:
    times = room.clock.times
    room.terminal.look()
    await room.clock.advance(times.confirm_s)
    assert await room.prompt() == (BASH, 1, times.confirm_s)

    room.seen = replace(room.seen, reader_ns=1)
    room.terminal.look()
    await room.clock.advance(times.printed_s)
    assert await room.prompt() == (BASH, 0, 0.0)


async def test_prompt_need_not_be_sure_of_a_shell_that_was_at_it_before(room: Room) -> None:
    confirm_s = room.clock.times.confirm_s

    assert await room.prompt(is_sure=False) == (BASH, 1, confirm_s)
    room.seen = replace(room.seen, reader_ns=1)
    assert await room.prompt(is_sure=False) == (BASH, 0, 0.0)


async def test_text_that_was_just_typed_has_to_be_read_first(room: Room) -> None:
    await room.prompt()
    room.terminal.typed(room.terminal.look().snapshot)

    shell, _, _ = await room.prompt(is_sure=False)

    assert shell is None


async def test_pane_whose_command_has_not_begun_gets_the_time_of_a_starting_shell(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = room.clock.times
    monkeypatch.setattr(prompts, "foreground_shell", lambda _: None)
    room.seen = BLOCKED
    # It has no child yet.
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as pane_sh:  # noqa: ASYNC220
        leader = processes.read_stat(pane_sh.pid)
        assert leader
        room.begin_terminal(leader)
        shell, _, waited_s = await room.prompt()
        pane_sh.communicate()

    assert shell is None
    assert times.starting_s <= waited_s < times.starting_s + times.young_s

    # It has ended.
    shell, _, waited_s = await room.prompt()
    assert (shell, waited_s) == (None, 0.0)
