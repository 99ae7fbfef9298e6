"""What a pane is doing, from looks that are made up: no terminal, no clock."""

import math
from dataclasses import replace
from typing import Any

import pytest

from tmux_debug_mcp.clock import Times
from tmux_debug_mcp.linux.terminals import Modes
from tmux_debug_mcp.panes.looking.activity import (
    ActivityTracker,
    Awaits,
    Snapshot,
    WaitKind,
    awaited,
    prompting_shell,
)
from tmux_debug_mcp.panes.sending import has_text_box, is_ready_for_step
from tmux_debug_mcp.panes.shells.dialects import (
    DIALECTS,
    OTHER_SHELLS,
    Shell,
    is_complete,
    may_go_on,
)
from tmux_debug_mcp.panes.stopping import StopAction, StopPlan
from tmux_debug_mcp.panes.watching import Moment, Need

LINES = Modes(is_canonical=True, echoes=True, is_raw=False, has_signal_keys=True, unread_bytes=0)
SECRET = LINES._replace(echoes=False)
EDITING = Modes(is_canonical=False, echoes=False, is_raw=True, has_signal_keys=True, unread_bytes=0)
READING = Snapshot(
    group=7, pid=7, modes=LINES, waiting=WaitKind.ALONE, shell_waiting=WaitKind.ALONE
)
BASH, DASH = Shell(7, "bash", (1, 2)), Shell(7, "dash", (1, 2))
DASH_READING = replace(READING, shell=DASH)
OTHERS = WaitKind.AMONG_OTHERS
TIMES = Times()
SOON = TIMES.confirm_s * 1.5


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (READING, Awaits.INPUT),
        (replace(READING, modes=SECRET), Awaits.HIDDEN_INPUT),
        (replace(READING, modes=EDITING), Awaits.KEYS),
        (replace(READING, modes=EDITING, asks_for_secret=True), Awaits.HIDDEN_INPUT),
        (replace(READING, waiting=WaitKind.AMONG_OTHERS), Awaits.INPUT),
        (replace(READING, waiting=WaitKind.NONE), None),
        (replace(READING, modes=LINES._replace(unread_bytes=1)), None),
        (replace(READING, modes=None), None),
        (replace(READING, is_over=True), None),
        (replace(READING, modes=EDITING, relays=True, waiting=WaitKind.AMONG_OTHERS), None),
        (replace(READING, relays=True, waiting=WaitKind.AMONG_OTHERS), None),
        (replace(READING, relays=True), Awaits.INPUT),  # ssh asks whether to go on
        (replace(READING, modes=SECRET, relays=True), Awaits.HIDDEN_INPUT),
        (replace(READING, waiting=WaitKind.UNKNOWN), None),
        (replace(READING, waiting=WaitKind.UNKNOWN, modes=EDITING), None),
        (replace(READING, waiting=WaitKind.UNKNOWN, modes=SECRET), None),  # sudo sleep
    ],
)
def test_what_is_awaited_follows_from_modes_and_readers(
    snapshot: Snapshot, expected: Awaits | None
) -> None:
    assert awaited(snapshot) is expected


BOX = replace(READING, modes=EDITING._replace(has_signal_keys=False), waiting=WaitKind.AMONG_OTHERS)


@pytest.mark.parametrize(
    ("snapshot", "is_box"),
    [
        (BOX, True),
        (replace(BOX, waiting=WaitKind.ALONE), True),
        (replace(BOX, waiting=WaitKind.NONE), True),  # it is at work
        (replace(BOX, waiting=WaitKind.BYTEWISE), False),  # linenoise
        (replace(BOX, modes=EDITING), False),  # readline
        (replace(BOX, modes=LINES), False),
        (replace(BOX, modes=LINES._replace(has_signal_keys=False)), False),
        (replace(BOX, modes=None), False),
        (replace(BOX, relays=True), False),
        (replace(BOX, shell=BASH), False),
    ],
)
def test_text_box_reads_every_key_itself(snapshot: Snapshot, *, is_box: bool) -> None:
    assert has_text_box(snapshot) is is_box


@pytest.mark.parametrize(
    ("snapshot", "is_prompting"),
    [
        (replace(READING, shell=BASH, modes=EDITING), True),
        (replace(READING, shell=BASH, modes=LINES), False),  # `read x`
        (replace(READING, shell=BASH, modes=EDITING._replace(is_raw=False)), False),  # `read -n1 x`
        (replace(READING, shell=BASH, modes=EDITING, shell_waiting=WaitKind.UNKNOWN), True),
        (replace(READING, shell=DASH, modes=LINES), True),
        (replace(DASH_READING, shell_waiting=WaitKind.BYTEWISE), False),  # `read x`
        # `set +m; sleep 9 & read x`
        (replace(DASH_READING, waiting=OTHERS, shell_waiting=WaitKind.BYTEWISE), False),
        # A program in a command substitution, and one in the background.
        (replace(READING, shell=BASH, modes=EDITING, shell_waiting=WaitKind.NONE), False),
        (replace(READING, shell=BASH, modes=EDITING, waiting=OTHERS), True),
        (replace(READING, shell=DASH, modes=EDITING), False),
    ],
)
def test_shell_is_at_its_prompt_when_its_own_editor_or_reader_waits(
    snapshot: Snapshot, *, is_prompting: bool
) -> None:
    assert (prompting_shell(snapshot) is not None) == is_prompting


def test_one_look_is_not_enough() -> None:
    tracker = ActivityTracker(TIMES)

    first, second = tracker.step(READING, 0.0), tracker.step(READING, SOON)

    assert (first.awaits, first.is_likely, first.is_at_rest) == (None, True, False)
    assert (second.awaits, second.is_at_rest) == (Awaits.INPUT, True)


@pytest.mark.parametrize(
    "change", [{"printed_bytes": 1}, {"reader_ns": 1}, {"group": 8}, {"modes": SECRET}]
)
def test_what_happens_between_the_looks_makes_them_begin_anew(change: dict[str, Any]) -> None:
    tracker = ActivityTracker(TIMES)
    tracker.step(READING, 0.0)

    assert tracker.step(replace(READING, **change), SOON).awaits is None


def test_quiet_counts_from_when_one_began_to_look_but_a_wait_from_when_it_was_first_seen() -> None:
    tracker = ActivityTracker(TIMES)
    tracker.step(READING, 0.0)

    activity = tracker.step(READING, 9.0, since=8.9)
    assert (activity.awaits, activity.is_at_rest) == (Awaits.INPUT, True)
    assert activity.inactive_s == activity.unchanged_s == pytest.approx(0.1)
    assert tracker.step(READING, 9.0).inactive_s == 9.0


def test_slow_look_confirms_nothing_by_itself() -> None:
    tracker = ActivityTracker(TIMES)
    tracker.step(READING, 0.0, took_s=1.0)
    assert tracker.step(READING, 1.0).awaits is None


def test_wait_for_an_answer_of_tmux_is_none_for_keys_until_tmux_has_answered() -> None:
    tracker = ActivityTracker(TIMES)
    tracker.step(READING, 0.0)
    assert tracker.step(READING, SOON, is_flushed=False).awaits is None
    assert tracker.step(READING, TIMES.printed_s, is_flushed=False).awaits is Awaits.INPUT


def test_work_of_others_does_not_keep_a_reader_from_awaiting() -> None:
    tracker = ActivityTracker(TIMES)
    tracker.step(replace(READING, waiting=WaitKind.AMONG_OTHERS, cpu_ns=0, is_at_work=True), 0.0)
    activity = tracker.step(
        replace(READING, waiting=WaitKind.AMONG_OTHERS, cpu_ns=50_000_000, is_at_work=True), SOON
    )

    assert (activity.awaits, activity.is_at_rest) == (Awaits.INPUT, False)


def test_what_was_typed_has_to_leave_a_trace_before_its_reader_counts_again() -> None:
    tracker = ActivityTracker(TIMES, before=READING)

    assert tracker.step(READING, 0.0).awaits is None
    assert tracker.step(READING, SOON).awaits is None
    echoed = replace(READING, printed_bytes=5)
    tracker.step(echoed, 2 * SOON)
    assert tracker.step(echoed, 3 * SOON).awaits is Awaits.INPUT


def test_what_was_typed_and_leaves_no_trace_counts_as_read_after_a_while() -> None:
    tracker = ActivityTracker(TIMES, before=READING)
    tracker.step(READING, 0.0)

    assert tracker.step(READING, 0.2).awaits is Awaits.INPUT


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(replace(READING, gets_keys=True), id="echoed"),
        pytest.param(replace(READING, modes=EDITING, gets_keys=True), id="read one by one"),
    ],
)
def test_keys_that_are_sure_to_leave_a_trace_are_unread_before_it(before: Snapshot) -> None:
    now = replace(before, gets_keys=False)
    tracker = ActivityTracker(TIMES, before=before)
    tracker.step(now, 0.0)

    late = tracker.step(now, 0.9 * TIMES.traced_s)
    assert (late.awaits, late.is_at_rest) == (None, False)
    assert tracker.step(now, TIMES.traced_s).is_at_rest


def test_program_that_waits_for_other_things_too_is_at_rest_when_it_is_quiet() -> None:
    tracker = ActivityTracker(TIMES)
    watching = replace(READING, modes=EDITING, waiting=WaitKind.AMONG_OTHERS)
    tracker.step(watching, 0.0)

    soon, later = tracker.step(watching, SOON), tracker.step(watching, TIMES.quiet_s)

    assert (soon.awaits, soon.only_awaits, soon.is_at_rest) == (Awaits.KEYS, False, False)
    assert (later.only_awaits, later.is_at_rest) == (True, True)


LOOP = replace(READING, modes=EDITING, waiting=WaitKind.AMONG_OTHERS, sleeps_s=math.inf)


@pytest.mark.parametrize(
    ("first", "second", "is_at_rest"),
    [
        pytest.param(LOOP, LOOP, True, id="loop that only keys wake"),
        pytest.param(LOOP, replace(LOOP, sleeps_s=TIMES.asleep_s), True, id="seldom wakes"),
        pytest.param(LOOP, replace(LOOP, sleeps_s=TIMES.asleep_s / 2), False, id="wakes soon"),
        pytest.param(LOOP, replace(LOOP, sleeps_s=0.0), False, id="others may wake it"),
        pytest.param(LOOP, replace(LOOP, cpu_ns=1), False, id="another thread has run"),
        pytest.param(replace(LOOP, is_at_work=True), LOOP, True, id="has worked"),
        pytest.param(LOOP, replace(LOOP, is_at_work=True), False, id="is at work"),
        pytest.param(LOOP, replace(LOOP, relays=True), False, id="relay"),
        pytest.param(
            LOOP, replace(LOOP, modes=EDITING._replace(unread_bytes=1)), False, id="unread keys"
        ),
    ],
)
def test_loop_that_sleeps_is_at_rest_when_two_looks_agree(
    first: Snapshot, second: Snapshot, *, is_at_rest: bool
) -> None:
    tracker = ActivityTracker(TIMES)

    assert not tracker.step(first, 0.0).is_at_rest
    assert tracker.step(second, SOON).is_at_rest is is_at_rest


def test_loop_that_sleeps_has_to_be_quiet_after_escape_which_may_begin_a_code() -> None:
    tracker = ActivityTracker(TIMES, before=replace(LOOP, gets_keys=True, gets_escape=True))
    has_read = replace(LOOP, reader_ns=1)
    tracker.step(has_read, 0.0)

    assert not tracker.step(has_read, SOON).is_at_rest
    assert tracker.step(has_read, TIMES.quiet_s).is_at_rest


def test_work_of_other_threads_is_no_trace_of_what_a_loop_has_read() -> None:
    tracker = ActivityTracker(TIMES, before=replace(LOOP, gets_keys=True))
    others_have_run = replace(LOOP, cpu_ns=1)
    tracker.step(others_have_run, 0.0)

    assert not tracker.step(others_have_run, SOON).is_at_rest


RAW = replace(READING, modes=EDITING)
WORKING = replace(READING, waiting=WaitKind.NONE)
UNREAD = LINES._replace(unread_bytes=3)


@pytest.mark.parametrize(
    ("before", "after", "soon", "later"),
    [
        pytest.param(READING, READING, True, True, id="reader"),
        pytest.param(READING, WORKING, False, False, id="progress bar"),
        pytest.param(READING, replace(WORKING, modes=UNREAD), False, False, id="typed ahead"),
        pytest.param(WORKING, WORKING, False, False, id="sleep"),
        pytest.param(RAW, replace(RAW, waiting=WaitKind.NONE), False, False, id="menu at work"),
        pytest.param(
            RAW, replace(RAW, waiting=WaitKind.AMONG_OTHERS), False, True, id="full-screen program"
        ),
        pytest.param(RAW, LOOP, True, True, id="event loop"),
        pytest.param(
            replace(RAW, waiting=WaitKind.NONE),
            replace(RAW, waiting=WaitKind.NONE),
            False,
            True,
            id="game that never waits",
        ),
        pytest.param(
            replace(RAW, waiting=WaitKind.NONE, group=6),
            replace(RAW, waiting=WaitKind.NONE),
            False,
            False,
            id="program that follows a game",
        ),
        pytest.param(READING, replace(READING, waiting=WaitKind.UNKNOWN), False, True, id="hidden"),
        pytest.param(
            READING,
            replace(READING, waiting=WaitKind.UNKNOWN, modes=UNREAD),
            False,
            False,
            id="hidden, typed ahead",
        ),
    ],
)
def test_step_goes_out_when_all_is_read_and_the_terminal_is_awaited(
    before: Snapshot, after: Snapshot, *, soon: bool, later: bool
) -> None:
    tracker = ActivityTracker(TIMES)
    tracker.step(after, 0.0)
    ready = [
        is_ready_for_step(TIMES, before, tracker.step(after, waited_s), waited_s, interrupts=False)
        for waited_s in (SOON, TIMES.quiet_s)
    ]

    assert ready == [soon, later]


def test_server_that_wakes_up_now_and_then_is_at_rest() -> None:
    tracker = ActivityTracker(TIMES)
    server = Snapshot(group=7, pid=7, modes=LINES)
    looks = [
        tracker.step(replace(server, cpu_ns=100_000 * number), number * 0.05) for number in range(8)
    ]

    assert [look.is_at_rest for look in looks] == [False] * 6 + [True] * 2
    assert all(look.awaits is None for look in looks)


@pytest.mark.parametrize("changing", ["printed_bytes", "cpu_ns"])
def test_program_that_prints_or_computes_is_not_at_rest(changing: str) -> None:
    tracker = ActivityTracker(TIMES)
    snapshot = Snapshot(group=7, pid=7, modes=LINES)
    looks = []
    for number in range(40):
        change: dict[str, Any] = {changing: 20_000_000 * number}
        looks.append(tracker.step(replace(snapshot, **change), number * 0.05))

    assert not any(look.is_at_rest for look in looks)


def test_program_that_has_ended_is_at_rest() -> None:
    assert ActivityTracker(TIMES).step(Snapshot(is_over=True), 0.0).is_at_rest


def test_looks_become_rarer_while_nothing_happens() -> None:
    tracker = ActivityTracker(TIMES)
    waits = [tracker.step(READING, at).look_again_s for at in (0.0, 0.1, 10.0)]

    assert waits == sorted(waits)
    assert waits[0] < waits[-1]


def stop(
    plan: StopPlan,
    snapshot: Snapshot,
    at: float,
    tracker: ActivityTracker | None = None,
    *,
    is_interactive: bool = False,
) -> StopAction | Need | None:
    """Return what a plan says for a look, which confirms nothing without the tracker of others."""
    activity = (tracker or ActivityTracker(TIMES)).step(snapshot, at)
    return plan(Moment(at, activity=activity, takes_commands=is_interactive))


class TestStopping:
    def test_group_is_told_once_it_has_had_the_terminal_for_a_while_and_once_only(self) -> None:
        plan = StopPlan(TIMES, is_interrupt=True)
        running = Snapshot(group=9)
        acts = [
            stop(plan, running, at) for at in (0.0, TIMES.steady_s / 2, TIMES.steady_s * 2, 1.0)
        ]
        assert acts == [None, None, StopAction.SIGNAL, None]

    def test_program_that_follows_is_told_too(self) -> None:
        plan = StopPlan(TIMES, is_interrupt=False)
        assert stop(plan, Snapshot(group=-1), 0.0) is None
        assert stop(plan, Snapshot(group=-1), 9.0) is None

        plan = StopPlan(TIMES, is_interrupt=False)
        stop(plan, Snapshot(group=9), 0.0)
        assert stop(plan, Snapshot(group=9), 0.1) is StopAction.SIGNAL
        assert stop(plan, Snapshot(group=10), 0.2) is None
        assert stop(plan, Snapshot(group=10), 0.3) is StopAction.SIGNAL_LIST

    def test_c_c_is_enough_for_the_programs_of_a_list(self) -> None:
        plan = StopPlan(TIMES, is_interrupt=True)
        acts = [
            stop(plan, Snapshot(group=group), at)
            for group, at in ((9, 0.0), (9, 0.1), (10, 0.2), (10, 0.3))
        ]
        assert acts == [None, StopAction.SIGNAL] * 2

    def test_programs_that_come_and_go_are_told_in_the_end(self) -> None:
        plan = StopPlan(TIMES, is_interrupt=True)
        acts = [stop(plan, Snapshot(group=number), number * 0.04) for number in range(15)]
        assert acts[:12] == [None] * 12
        assert StopAction.SIGNAL in acts

    def test_shell_at_work_is_interrupted_but_not_signalled(self) -> None:
        shell = replace(READING, shell=BASH, waiting=WaitKind.NONE, shell_waiting=WaitKind.NONE)
        for is_interrupt, expected in ((True, StopAction.SIGNAL), (False, StopAction.REFUSE)):
            plan = StopPlan(TIMES, is_interrupt=is_interrupt)
            stop(plan, shell, 0.0, is_interactive=True)
            assert stop(plan, shell, 1.0, is_interactive=True) is expected

    def test_program_that_awaits_input_after_the_signal_is_not_waited_for(self) -> None:
        plan, tracker = StopPlan(TIMES, is_interrupt=True), ActivityTracker(TIMES)
        reading = replace(READING, group=9)
        acts = [stop(plan, reading, at, tracker) for at in (0.0, 0.1, 0.2, 0.2 + TIMES.quiet_s)]
        assert acts == [None, StopAction.SIGNAL, None, StopAction.GIVE_UP]

    def test_shell_at_its_prompt_and_program_that_has_ended_have_stopped(self) -> None:
        plan, tracker = StopPlan(TIMES, is_interrupt=True), ActivityTracker(TIMES)
        prompt = replace(READING, shell=DASH, shell_waiting=WaitKind.ALONE)
        acts = [stop(plan, prompt, at, tracker, is_interactive=True) for at in (0.0, SOON)]
        assert acts == [None, StopAction.END]
        assert stop(plan, Snapshot(is_over=True), 1.0) is StopAction.END

    def test_terminal_is_restored_for_a_shell_that_does_not_do_that(self) -> None:
        for shell, expected in ((DASH, StopAction.RESTORE), (BASH, None)):
            plan = StopPlan(TIMES, is_interrupt=True)
            stop(plan, Snapshot(group=9), 0.0)
            stop(plan, Snapshot(group=9), 0.1)
            back = Snapshot(group=7, shell=shell)
            stop(plan, back, 0.2, is_interactive=True)
            assert stop(plan, back, 0.3, is_interactive=True) is expected


@pytest.mark.parametrize(
    "line",
    ["", "false", "make -j4 test; echo $?", "cd 'My Documents'", 'X="a;b" ./run --at=1,2', "a ~/b"],
)
def test_simple_lines_are_complete(line: str) -> None:
    assert is_complete(line)
    assert not may_go_on(line)


@pytest.mark.parametrize(
    "line",
    [
        *(
            "it's",
            'say "',
            "a `b",
            "a \\",
            "a |",
            "a &&",
            "a ||  ",
            "a <<E",
            "a $(b",
            "f() {",
            "a=(1",
        ),
        *("if a", "a; for i", "case a in", "begin", "not", "while", "coproc x {", "a; do"),
    ],
)
def test_lines_that_go_on_are_not_taken_for_complete_ones(line: str) -> None:
    assert may_go_on(line)
    assert not is_complete(line)


@pytest.mark.parametrize(
    "line", ["(exit 7)", "!!", "^a^b", "f()", "echo 'a\\'", "a\tb", "# it", "a*"]
)
def test_what_shells_may_read_otherwise_is_not_surely_complete(line: str) -> None:
    assert not is_complete(line)


def test_shells_that_can_be_given_commands_are_none_of_the_others() -> None:
    assert not set(DIALECTS) & set(OTHER_SHELLS)
