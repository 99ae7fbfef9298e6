"""When waits end and what they tell, in virtual time: what a program does is told by the test."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import anyio
import pytest
from clocks import VirtualClock
from staging import BLOCKED, PROMPT, READING, SECRET, StagedPane

from tmux_debug_mcp.linux.processes import Stat
from tmux_debug_mcp.panes.caller_session import CallerSession, PaneView
from tmux_debug_mcp.panes.looking.activity import Snapshot, WaitKind
from tmux_debug_mcp.panes.observing import since_cursor
from tmux_debug_mcp.panes.reports import OldMatch, Reason, Report, Selection
from tmux_debug_mcp.panes.waiting import Conditions, observe, wait
from tmux_debug_mcp.vt.echo import Echoer

Program = Callable[[StagedPane], Awaitable[None]]


@dataclass
class Act:
    """What a program does after some seconds: it prints, is seen otherwise, or ends.

    The log may begin to be late then, or catch up.
    """

    after_s: float
    prints: str = ""
    becomes: Snapshot | None = None
    exits: int | None = None
    stalls: bool = False
    catches_up: bool = False


async def play(pane: StagedPane, acts: list[Act]) -> None:
    for act in acts:
        await pane.clock.sleep(act.after_s)
        pane.snapshot = act.becomes or pane.snapshot
        pane.is_stalled |= act.stalls
        pane.print(act.prints)
        if act.catches_up:
            pane.catch_up()
        if act.exits is not None:
            pane.exit(act.exits)


async def waited(
    pane: StagedPane, clock: VirtualClock, acts: list[Act], conditions: Conditions
) -> tuple[Report, float]:
    """Return the report of a wait from the pane's first byte on, and when it came."""
    async with clock.jumping(), anyio.create_task_group() as tasks:
        tasks.start_soon(play, pane, acts)
        [report] = await wait([pane], conditions, partial(since_cursor, cursor=0))
        ended_at = clock.now()
        tasks.cancel_scope.cancel()
    return report, ended_at


@dataclass
class Rule:
    """A wait, what the program does, and how the wait ends: why, when, and with which text."""

    acts: list[Act]
    conditions: Conditions
    reason: Reason
    at_s: float
    text: str = ""


REST = Conditions(is_for_rest=True, timeout_s=1)
INPUT = Conditions(is_for_input=True)
MATCH = Conditions("ready")
GONE = Conditions(gone="Thinking")
SPINNER = [Act(0.1, "\r\033[K| Thinking"), Act(0.1, "\r\033[K")]
# Two lines, which are erased from the last one up before they are written again.
BLOCK = [
    Act(0.1, "> Thinking\n  esc to stop\n"),
    Act(0.1, "\033[2K\033[1A\033[2K\033[1A\033[2K\r"),
]
OTHERS = replace(PROMPT, waiting=WaitKind.AMONG_OTHERS, shell=None)
RULES = {
    "a server that has started is at rest when it was quiet": Rule(
        [Act(0.1, "up\n"), Act(0.2, "port 80\n", BLOCKED)],
        REST,
        Reason.REST,
        0.6,
        "up\nport 80\n",
    ),
    "a program that works on is not at rest in its time": Rule(
        [Act(0.1, "up\n")], REST, Reason.TIMED_OUT, 1.0, "up\n"
    ),
    "a program that awaits a line is at rest at once": Rule(
        [Act(0.2, "name: ", READING)], REST, Reason.INPUT, 0.2, "name: "
    ),
    "a program that awaits keys among other things has to be quiet": Rule(
        [Act(0.2, "menu", OTHERS)], REST, Reason.INPUT, 0.5, "menu"
    ),
    "a program that ends is told with all that it printed": Rule(
        [Act(0.2, "a\nb\n"), Act(0.05, exits=3)], REST, Reason.EXITED, 0.25, "a\nb\n"
    ),
    "a wait without a condition is over at the end": Rule(
        [Act(0.1, "x\n"), Act(2, exits=0)], INPUT, Reason.EXITED, 2.1, "x\n"
    ),
    "a wait without a condition is over when input is awaited": Rule(
        [Act(0.1, "x\n", BLOCKED), Act(2, "? ", READING)], INPUT, Reason.INPUT, 2.1, "x\n? "
    ),
    "a line that matches ends a wait at once, with what came before": Rule(
        [Act(3, "one\n"), Act(4, "ready\n")], MATCH, Reason.MATCHED, 7.0, "one\nready\n"
    ),
    "a line that is whole only later is shown whole if it follows at once": Rule(
        [Act(3, "rea"), Act(1, "dy: "), Act(0.002, "80\n")],
        MATCH,
        Reason.MATCHED,
        4.002,
        "ready: 80\n",
    ),
    "a line that matches the other pattern ends it as stopped": Rule(
        [Act(3, "error\n")], Conditions("ready", "error"), Reason.STOPPED, 3.0, "error\n"
    ),
    "a wait for what never comes ends at its timeout": Rule(
        [Act(1, "x\n", BLOCKED)], MATCH, Reason.TIMED_OUT, 30.0, "x\n"
    ),
    "nothing can come at a shell's prompt where nothing else runs": Rule(
        [Act(1, "$ ", PROMPT)], MATCH, Reason.INPUT, 1.3, "$ "
    ),
    "nothing can come before a secret is typed": Rule(
        [Act(1, "Password: ", SECRET)], MATCH, Reason.INPUT, 1.3, "Password: "
    ),
    "a program that awaits a line may print by itself": Rule(
        [Act(1, "? ", READING), Act(9, "ready\n")], MATCH, Reason.MATCHED, 10.0, "? ready\n"
    ),
    "idle is counted from the last output": Rule(
        [Act(1, "x\n"), Act(2, "y\n")], Conditions(idle_s=2.5), Reason.IDLE, 5.5, "x\ny\n"
    ),
    "a line that is late in the log is waited for at a shell's prompt": Rule(
        [Act(1, "ready\n$ ", PROMPT, stalls=True), Act(6, catches_up=True)],
        MATCH,
        Reason.MATCHED,
        7.0,
        "ready\n$ ",
    ),
    "a line that is late in the log is waited for beyond the timeout": Rule(
        [Act(1, "ready\n", stalls=True), Act(29.5, catches_up=True)],
        MATCH,
        Reason.MATCHED,
        30.5,
        "ready\n",
    ),
    "nobody waits longer for a log that is late": Rule(
        [Act(1, "ready\n$ ", PROMPT, stalls=True)], MATCH, Reason.TIMED_OUT, 31.0
    ),
    "a log that is late is not idle": Rule(
        [Act(1, "x\n", stalls=True), Act(6, catches_up=True)],
        Conditions(idle_s=2.5),
        Reason.IDLE,
        9.5,
        "x\n",
    ),
    "a spinner is gone after its last frame, not between two": Rule(
        [*SPINNER * 5, Act(0, "answer: 42\n")], GONE, Reason.GONE, 2.0, "answer: 42\n"
    ),
    "a spinner of several lines is, too": Rule(
        [*BLOCK * 5, Act(0, "answer: 42\n")], GONE, Reason.GONE, 2.0, "answer: 42\n"
    ),
    "a spinner of several lines that stays for long is not gone": Rule(
        [*BLOCK, BLOCK[0], BLOCK[1], BLOCK[0], Act(9, BLOCK[1].prints + "done\n")],
        GONE,
        Reason.GONE,
        10.5,
        "done\n",
    ),
    "a spinner that stops is not gone": Rule(
        [*SPINNER * 2, SPINNER[0]],
        replace(GONE, timeout_s=5),
        Reason.TIMED_OUT,
        5.0,
        "| Thinking",
    ),
    "a line that has ended is no spinner": Rule(
        [Act(0.1, "Thinking\n", READING)], GONE, Reason.GONE, 1.0, "Thinking\n"
    ),
    "a program that ends takes what it shows with it": Rule(
        [*SPINNER * 5, SPINNER[0], Act(0.1, exits=3)], GONE, Reason.GONE, 1.2, "| Thinking"
    ),
    "a line that matches may come before a spinner is gone": Rule(
        [*SPINNER * 5, Act(0.5, "ready\n")],
        Conditions("ready", gone="Thinking"),
        Reason.MATCHED,
        1.5,
        "ready\n",
    ),
    "or after it": Rule(
        [*SPINNER * 5, Act(1.5, "ready\n")],
        Conditions("ready", gone="Thinking"),
        Reason.GONE,
        2.0,
    ),
    "quiet comes first if it is shorter": Rule(
        [*SPINNER * 5, Act(0, "\n", READING)],
        Conditions(gone="Thinking", idle_s=0.5),
        Reason.IDLE,
        1.5,
    ),
    "a spinner in a log that is late is not gone": Rule(
        [
            *SPINNER * 5,
            Act(0.5, SPINNER[0].prints, stalls=True),
            Act(3, catches_up=True),
            SPINNER[1],
        ],
        GONE,
        Reason.GONE,
        5.6,
    ),
    "a look does not wait": Rule([Act(1)], Conditions(timeout_s=0), Reason.TIMED_OUT, 0.0),
}


@pytest.mark.parametrize("name", RULES)
async def test_rule(pane: StagedPane, clock: VirtualClock, name: str) -> None:
    rule = RULES[name]
    report, ended_at = await waited(pane, clock, rule.acts, rule.conditions)

    assert (report.reason, report.excerpt.text) == (rule.reason, rule.text)
    # Looks are some milliseconds apart; a pane that was quiet for long is looked at less often.
    assert rule.at_s <= ended_at <= rule.at_s * 1.02 + 0.02


async def test_end_right_after_a_match_is_told_with_it(
    pane: StagedPane, clock: VirtualClock
) -> None:
    acts = [Act(1, "ready\n"), Act(0.015, exits=3)]
    report, ended_at = await waited(pane, clock, acts, MATCH)

    assert (report.reason, report.state.exit_code) == (Reason.MATCHED, 3)
    assert ended_at == pytest.approx(1.015, abs=0.002)


@pytest.mark.parametrize(
    ("later_s", "shown"), [(0.5, "[the last screen]\nmenu\n[then]\nfailed\n"), (6, "failed\n")]
)
@pytest.mark.parametrize("is_live", [True, False])
async def test_last_screen_is_shown_if_the_program_fails_soon_after_it(
    pane: StagedPane, clock: VirtualClock, later_s: float, shown: str, *, is_live: bool
) -> None:
    menu, leaves = "\033[?1049h\033[Hmenu", "\033[?1049l"
    acts = [Act(1, menu), Act(1, leaves), Act(later_s, "failed\n"), Act(0.1, exits=1)]
    if not is_live:
        async with clock.jumping():
            await play(pane, acts)
        acts = []
    report, _ = await waited(pane, clock, acts, replace(INPUT, timeout_s=100))

    assert (report.reason, report.excerpt.text) == (Reason.EXITED, shown)


async def test_job_in_the_background_may_still_print(pane: StagedPane, clock: VirtualClock) -> None:
    pane.runs_others = True
    report, ended_at = await waited(pane, clock, [Act(1, "$ ", PROMPT), Act(5, "ready\n")], MATCH)
    assert (report.reason, ended_at) == (Reason.MATCHED, 6.0)


async def test_person_who_has_the_keyboard_may_type(pane: StagedPane, clock: VirtualClock) -> None:
    pane.keyboard.hand_over("ann")
    report, ended_at = await waited(pane, clock, [Act(1, "$ ", PROMPT), Act(5, "ready\n")], MATCH)
    assert (report.reason, ended_at) == (Reason.MATCHED, 6.0)


async def test_what_was_printed_until_the_last_look_can_match(
    pane: StagedPane, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, looks = pane.terminal.snapshot, 0

    def print_and_look() -> Snapshot:
        nonlocal looks
        looks += pane.snapshot is PROMPT
        if looks == 1:
            pane.print("ready\n")
        return look()

    monkeypatch.setattr(pane.terminal, "snapshot", print_and_look)
    report, _ = await waited(pane, clock, [Act(1, "$ ", PROMPT)], MATCH)
    assert (report.reason, report.excerpt.text) == (Reason.MATCHED, "$ ready\n")


async def test_wait_for_a_line_hardly_looks_at_the_pane(
    pane: StagedPane, clock: VirtualClock
) -> None:
    conditions = replace(MATCH, timeout_s=300)
    report, _ = await waited(pane, clock, [Act(0, "x\n", BLOCKED)], conditions)
    assert (report.reason, pane.looks < 20) == (Reason.TIMED_OUT, True)


class TestOldMatches:
    """Waits that match what their caller had been shown before."""

    @staticmethod
    async def old_match(
        pane: StagedPane, clock: VirtualClock, shown: Sequence[str], then: str = ""
    ) -> OldMatch | None:
        """Return what is told of a match if a caller was shown some lines, 10 s apart.

        More is printed 10 s later, and the wait begins 2 s after that.
        """
        session = CallerSession()
        for text in shown:
            pane.print(text)
            pane.log.note_growth()
            await clock.advance(10)
        session.note(pane, PaneView(pane.log.size))
        pane.print(then)
        await clock.advance(2)
        async with clock.jumping():
            begin = partial(since_cursor, cursor=0)
            [report] = await wait([pane], MATCH, begin, session)
        assert report.reason is Reason.MATCHED
        return report.old_match

    @pytest.mark.parametrize(
        ("shown", "age_s"),
        [
            (["ready\n"], 12.0),
            (["x\n", "ready\n", "y\n"], 22.0),
            (["ready\n", "ready\n"], 22.0),
            (["x\n", "and rea", "dy\n", "y\n"], 22.0),
            (["x\n", "ready? "], 12.0),
            (["\033[32mready\033[m\n", "y\n"], 22.0),
            (["x\n" * 5000, "ready\n", "y\n" * 5000], 22.0),
        ],
    )
    async def test_match_in_what_was_shown_says_when_it_was_printed(
        self, pane: StagedPane, clock: VirtualClock, shown: list[str], age_s: float
    ) -> None:
        size = sum(len(text) + text.count("\n") for text in shown)
        old = await self.old_match(pane, clock, shown, "ready\n")
        assert old == OldMatch(age_s, is_row=False, new_from=size)

    @pytest.mark.parametrize(
        ("shown", "then"),
        [([], "ready\n"), (["x\n"], "ready\n"), (["x\n", "rea"], "dy\n"), (["read"], "\rready\n")],
    )
    async def test_match_in_what_was_not_shown_yet_is_not_old(
        self, pane: StagedPane, clock: VirtualClock, shown: list[str], then: str
    ) -> None:
        assert await self.old_match(pane, clock, shown, then) is None

    async def test_echo_of_what_was_typed_is_not_what_was_printed(
        self, pane: StagedPane, clock: VirtualClock
    ) -> None:
        pane.echoes = Echoer.TERMINAL
        pane.type("make; echo ready")
        old = await self.old_match(pane, clock, ["make; echo ready\n", "x\n", "ready\n", "y\n"])
        assert old == OldMatch(22.0, is_row=False, new_from=pane.log.size)


class TestSteps:
    """Waits that begin with steps of keys."""

    @staticmethod
    async def seen(
        pane: StagedPane,
        clock: VirtualClock,
        acts: list[Act],
        conditions: Conditions,
        last: Sequence[str] = ("two",),
    ) -> tuple[Report, float]:
        """Return the report after two steps, the last of these texts, and when it came.

        The acts with `after_s` 0 come between them.
        """
        between = [act for act in acts if not act.after_s]
        after = acts[len(between) :]
        async with clock.jumping(), anyio.create_task_group() as tasks:
            sent = pane.type("one")
            observation = await since_cursor(pane, conditions.matcher(), sent.cursor)
            await observation.step(sent)
            await play(pane, between)
            await observation.step(pane.type(*last))
            tasks.start_soon(play, pane, after)
            deadline = clock.now() + conditions.timeout_s
            report = await observe(observation, conditions, deadline)
            ended_at = clock.now()
            tasks.cancel_scope.cancel()
        return report, ended_at

    async def test_match_before_the_last_step_counts_once_the_pane_is_at_rest(
        self, pane: StagedPane, clock: VirtualClock
    ) -> None:
        acts = [Act(0, "ready\n"), Act(2, "done\n", BLOCKED)]
        report, ended_at = await self.seen(pane, clock, acts, MATCH)

        assert (report.reason, report.is_early) == (Reason.MATCHED, True)
        assert report.excerpt.text == "ready\ndone\n"
        assert 2.3 <= ended_at < 2.4

    async def test_match_after_the_last_step_counts_at_once(
        self, pane: StagedPane, clock: VirtualClock
    ) -> None:
        acts = [Act(0, "ready 1\n"), Act(2, "ready 2\n", BLOCKED)]
        report, ended_at = await self.seen(pane, clock, acts, MATCH)

        assert (report.reason, report.is_early) == (Reason.MATCHED, False)
        assert ended_at == 2.0

    async def test_match_right_before_the_pane_is_seen_at_rest_is_no_early_one(
        self, pane: StagedPane, clock: VirtualClock
    ) -> None:
        acts = [Act(0, "ready 1\n", BLOCKED), Act(0.2513, "ready 2\nmore\n", READING)]
        report, _ = await self.seen(pane, clock, acts, MATCH)

        assert (report.reason, report.is_early) == (Reason.MATCHED, False)
        assert report.excerpt.text == "ready 1\nready 2\nmore\n"

    async def test_answer_to_a_step_is_no_echo_of_one_before_it(
        self, pane: StagedPane, clock: VirtualClock
    ) -> None:
        pane.echoes = Echoer.TERMINAL
        acts = [Act(0, "one\nsure? "), Act(2, "\nready for <one>\n", BLOCKED)]
        report, ended_at = await self.seen(pane, clock, acts, MATCH, last=())

        assert (report.reason, ended_at) == (Reason.MATCHED, 2.0)

    async def test_stop_pattern_before_the_last_step_ends_it_at_once(
        self, pane: StagedPane, clock: VirtualClock
    ) -> None:
        acts = [Act(0, "error\n", BLOCKED)]
        report, ended_at = await self.seen(pane, clock, acts, Conditions("ready", "error"))
        assert (report.reason, ended_at) == (Reason.STOPPED, 0.0)

    async def test_each_step_keeps_its_share(self, pane: StagedPane, clock: VirtualClock) -> None:
        between = "".join(f"small {number}\n" for number in range(5))
        flood = "".join(f"line {number}\n" for number in range(1000))
        conditions = replace(REST, shows=Selection(1000))
        acts = [Act(0, between), Act(0.1, flood, READING)]
        report, _ = await self.seen(pane, clock, acts, conditions)

        text = report.excerpt.text
        assert text.startswith(between)
        assert text.endswith("line 999\n")
        assert len(text) <= 1000
        [note] = [report.excerpt.lines[index] for index in report.excerpt.notes]
        assert re.fullmatch(r"\[\d+ lines left out\]", note)
        assert [gap.line for gap in report.excerpt.gaps] == report.excerpt.notes


async def after(clock: VirtualClock, at_s: float, happens: Callable[[], object]) -> None:
    await clock.sleep(at_s)
    happens()


async def test_what_is_typed_while_the_log_is_late_counts_for_quiet(
    pane: StagedPane, clock: VirtualClock
) -> None:
    pane.snapshot = BLOCKED
    pane.is_stalled = True

    def type_text() -> None:
        pane.type("x")
        pane.catch_up()

    async with clock.jumping(), anyio.create_task_group() as tasks:
        tasks.start_soon(after, clock, 3.2, type_text)
        conditions = Conditions(idle_s=3.0)
        [report] = await wait([pane], conditions, partial(since_cursor, cursor=0))

    assert report.reason is Reason.IDLE
    assert clock.now() == pytest.approx(6.2)


async def test_person_who_takes_the_keyboard_while_the_log_is_late_may_type(
    pane: StagedPane, clock: VirtualClock
) -> None:
    pane.snapshot = PROMPT
    pane.is_stalled = True

    def take() -> None:
        pane.keyboard.hand_over("ann")
        pane.catch_up()

    async with clock.jumping(), anyio.create_task_group() as tasks:
        tasks.start_soon(after, clock, 0.5, take)
        conditions = Conditions("ready", timeout_s=5)
        [report] = await wait([pane], conditions, partial(since_cursor, cursor=0))

    assert report.reason is Reason.TIMED_OUT


async def test_what_a_program_leaves_that_ends_while_the_log_is_late_may_print(
    pane: StagedPane, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane.snapshot = PROMPT
    pane.is_stalled = True
    left = [Stat(pid=7)]
    monkeypatch.setattr(pane, "left", lambda: left)

    def end() -> None:
        pane.catch_up()
        pane.exit(0)

    async with clock.jumping(), anyio.create_task_group() as tasks:
        tasks.start_soon(after, clock, 0.5, end)
        tasks.start_soon(after, clock, 2.0, left.clear)
        [report] = await wait([pane], MATCH, partial(since_cursor, cursor=0))

    assert report.reason is Reason.EXITED
    assert clock.now() >= 2.0
