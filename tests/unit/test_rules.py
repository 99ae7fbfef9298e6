"""What rules say of moments that are made up: no process, no tmux, and no time passes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from clocks import VirtualClock
from staging import BLOCKED, BUSY, LINES, PROMPT, READING, SECRET, StagedPane

from tmux_debug_mcp.clock import Times
from tmux_debug_mcp.logs.matching import MatchReason
from tmux_debug_mcp.logs.retention import MAX_LOG_BYTES
from tmux_debug_mcp.panes.looking.activity import Activity, ActivityTracker, Snapshot, WaitKind
from tmux_debug_mcp.panes.looking.state import ended_state
from tmux_debug_mcp.panes.prompts import AtPrompt
from tmux_debug_mcp.panes.reports import Reason
from tmux_debug_mcp.panes.running import giving
from tmux_debug_mcp.panes.running.runs import EndOfJob, EndOfRun, EndOfTypedJob, RunAction
from tmux_debug_mcp.panes.sending import can_type
from tmux_debug_mcp.panes.shells.dialects import Shell
from tmux_debug_mcp.panes.waiting import Conditions, EndOfWait
from tmux_debug_mcp.panes.watching import Later, Moment, Need, at_rest

if TYPE_CHECKING:
    from tmux_debug_mcp.panes.shells.jobs import FileJob, TypedJob

TIMES = Times()
LATER = Later(math.inf)  # at any time
LOOK, DRAIN, PORTS, OTHERS = Need.LOOK, Need.DRAIN, Need.PORTS, Need.OTHERS
OVER = Snapshot(is_over=True)
EXITED, FAILED = ended_state(0, 1.0, 9), ended_state(3, 1.0, 9)
MATCHED, STOPPED = MatchReason.MATCHED, MatchReason.STOPPED


def seen(snapshot: Snapshot, inactive_s: float = 0.01) -> Activity:
    """Return what a pane does that was like this for some time."""
    tracker = ActivityTracker(TIMES)
    tracker.step(snapshot, 0.0)
    return tracker.step(snapshot, inactive_s)


QUIET = seen(BLOCKED, 0.4)


def told(answer: object) -> object:
    """Return an answer without the time at which the rule is asked again."""
    return LATER if isinstance(answer, Later) else answer


@dataclass
class Case:
    """What a wait is for, a moment, and what the rule says of it."""

    conditions: Conditions
    moment: Moment
    answer: object
    early: MatchReason | None = None


AT = Moment(10.0, touched_at=10.0)
IDLE = replace(AT, touched_at=-50.0)
REST, INPUT, MATCH = Conditions(is_for_rest=True), Conditions(is_for_input=True), Conditions("x")
PORT, QUIETLY = Conditions(port=80), Conditions(idle_s=2.0)
GONE, BOTH = Conditions(gone="x"), Conditions("y", gone="x")
LATE = replace(IDLE, now=11.0)
WAITS = {
    "a rest needs a look": Case(REST, AT, LOOK),
    "and a log that was drained": Case(REST, replace(AT, activity=QUIET), DRAIN),
    "then it is one": Case(REST, replace(AT, activity=QUIET, is_drained=True), Reason.REST),
    "in a log that is late, too": Case(
        REST, replace(AT, activity=QUIET, is_drained=False), Reason.REST
    ),
    "input is the news where it is awaited": Case(
        REST, replace(AT, activity=seen(READING), is_drained=True), Reason.INPUT
    ),
    "rest is no input": Case(INPUT, replace(AT, activity=QUIET), None),
    "one that works is asked for again": Case(REST, replace(AT, activity=seen(BUSY)), None),
    "one whose end is about to be known is not at rest": Case(
        REST, replace(AT, activity=seen(OVER)), None
    ),
    "an end is told": Case(REST, replace(AT, ending=EXITED), Reason.EXITED),
    "what is left running may print": Case(MATCH, replace(AT, ending=EXITED), OTHERS),
    "if there is anything": Case(
        MATCH, replace(AT, ending=EXITED, runs_others=False), Reason.EXITED
    ),
    "then the wait goes on": Case(MATCH, replace(AT, ending=EXITED, runs_others=True), None),
    "a failure is the news": Case(MATCH, replace(AT, ending=FAILED), Reason.EXITED),
    "a match comes before an end": Case(
        MATCH, replace(AT, match=MATCHED, ending=FAILED), Reason.MATCHED
    ),
    "a port has to be looked up": Case(PORT, AT, PORTS),
    "and is found": Case(PORT, replace(AT, ports=frozenset({22, 80})), Reason.LISTENS),
    "or looked up again": Case(PORT, replace(AT, ports=frozenset({22})), LATER),
    "quiet is counted": Case(QUIETLY, AT, Later(12.0)),
    "nobody knows what is in a log that is late": Case(QUIETLY, IDLE, DRAIN),
    "so it is not idle": Case(QUIETLY, replace(IDLE, is_drained=False), None),
    "a drained one is": Case(QUIETLY, replace(IDLE, is_drained=True), Reason.IDLE),
    "what nothing matches may be between two frames": Case(
        GONE, replace(AT, activity=seen(BUSY)), LATER
    ),
    "what is gone for long may be in a log that is late": Case(GONE, LATE, DRAIN),
    "then nobody knows": Case(GONE, replace(LATE, is_drained=False), LOOK),
    "in a drained one it is gone": Case(GONE, replace(LATE, is_drained=True), Reason.GONE),
    "what is there is not gone": Case(GONE, replace(IDLE, stands=True, activity=seen(BUSY)), LATER),
    "and goes only if somebody types at a prompt": Case(
        GONE,
        replace(IDLE, stands=True, activity=seen(PROMPT), is_drained=True, runs_others=False),
        Reason.INPUT,
    ),
    "where it does not come back either": Case(
        GONE,
        replace(AT, touched_at=9.5, activity=seen(PROMPT), is_drained=True, runs_others=False),
        Reason.GONE,
    ),
    "what fails has left nothing there": Case(
        GONE, replace(AT, stands=True, ending=FAILED), Reason.GONE
    ),
    "what ends may have left something that draws": Case(
        GONE, replace(AT, stands=True, ending=EXITED), OTHERS
    ),
    "which is waited for, too": Case(
        GONE, replace(AT, stands=True, ending=EXITED, runs_others=True), None
    ),
    "or nothing": Case(
        GONE, replace(AT, stands=True, ending=EXITED, runs_others=False), Reason.GONE
    ),
    "a match comes before what is gone": Case(
        BOTH, replace(IDLE, match=MATCHED, is_drained=True), Reason.MATCHED
    ),
    "what is gone comes before a match": Case(BOTH, replace(LATE, is_drained=True), Reason.GONE),
    "what is back is asked for once it was gone": Case(
        replace(GONE, is_back=True), replace(IDLE, stands=True), Reason.BACK
    ),
    "and not before": Case(replace(GONE, is_back=True), replace(IDLE, activity=seen(BUSY)), LATER),
    "a flood ends a wait for quiet": Case(
        QUIETLY, replace(AT, size=MAX_LOG_BYTES + 1), Reason.FLOODED
    ),
    "but none for a line": Case(MATCH, replace(AT, size=MAX_LOG_BYTES + 1), LATER),
    "a timeout needs a log that was drained": Case(MATCH, replace(AT, is_due=True), DRAIN),
    "nobody waits for it for longer": Case(
        MATCH, replace(AT, is_due=True, is_drained=False), Reason.TIMED_OUT
    ),
    "what matched early counts at rest": Case(
        MATCH, replace(AT, activity=QUIET, is_drained=True), Reason.MATCHED, MATCHED
    ),
    "and at the end": Case(MATCH, replace(AT, ending=EXITED), Reason.MATCHED, MATCHED),
    "and at the timeout": Case(
        MATCH,
        replace(AT, is_due=True, activity=seen(BUSY), is_drained=True),
        Reason.MATCHED,
        MATCHED,
    ),
    "where it stops, at once": Case(MATCH, AT, Reason.STOPPED, STOPPED),
    "a line may come while something was printed lately": Case(MATCH, AT, Later(10.3)),
    "later it is looked whether one may": Case(MATCH, IDLE, LOOK),
    "one at work may print": Case(MATCH, replace(IDLE, activity=seen(BUSY)), LATER),
    "one that awaits a line, too": Case(MATCH, replace(IDLE, activity=seen(READING)), LATER),
    "one that awaits a secret does not": Case(MATCH, replace(IDLE, activity=seen(SECRET)), DRAIN),
    "nor a shell at its prompt": Case(
        MATCH, replace(IDLE, activity=seen(PROMPT), is_drained=True), OTHERS
    ),
    "where nothing else runs": Case(
        MATCH,
        replace(IDLE, activity=seen(PROMPT), is_drained=True, runs_others=False),
        Reason.INPUT,
    ),
    "what runs beside it may": Case(
        MATCH, replace(IDLE, activity=seen(PROMPT), is_drained=True, runs_others=True), LATER
    ),
    "and so may a person": Case(MATCH, replace(IDLE, has_person=True), LATER),
    "a look at what is there does not ask": Case(replace(MATCH, timeout_s=0), IDLE, None),
}


@pytest.mark.parametrize("name", WAITS)
def test_end_of_a_wait(name: str) -> None:
    case = WAITS[name]
    rule = EndOfWait(TIMES, case.conditions, 0, case.early)
    rule(replace(AT, size=case.moment.size))  # the log has grown
    answer = rule(case.moment)
    is_any_time = case.answer is LATER
    assert (told(answer) if is_any_time else answer) == pytest.approx(case.answer)


def test_what_was_gone_between_two_frames_is_gone_only_after_the_last_one() -> None:
    rule = EndOfWait(TIMES, GONE, 0, None)
    frames = replace(AT, activity=seen(BUSY), is_drained=True)
    for tenth in range(30):  # there for 0.3 s, and not there for 0.7 s
        at = 10 + tenth / 10
        stands = tenth % 10 < 3
        last = (tenth // 10) + (0.0 if stands else 0.3)
        moment = replace(frames, now=at, touched_at=10 + last, stands=stands)
        assert not isinstance(rule(moment), Reason)
    assert rule(replace(frames, now=13.2, touched_at=12.3)) == pytest.approx(Later(13.3))
    assert rule(replace(frames, now=13.31, touched_at=12.3)) is Reason.GONE


def test_check_whether_anything_can_come_becomes_rare_until_something_is_printed() -> None:
    rule = EndOfWait(TIMES, MATCH, 0, None)
    busy, asked = seen(BUSY), []
    grown = replace(AT, now=99.0, touched_at=99.0, size=1)
    for moment in (IDLE, replace(IDLE, now=99.0), grown):
        answer = rule(replace(moment, activity=busy))
        assert isinstance(answer, Later)
        asked.append(answer.at - moment.touched_at)
    assert asked == pytest.approx([120.0, 298.0, TIMES.quiet_s])


@pytest.mark.parametrize(
    ("moment", "answer"),
    [
        (AT, LOOK),
        (replace(AT, activity=seen(BUSY)), None),
        (replace(AT, activity=QUIET), True),
        (replace(AT, activity=seen(READING)), True),
        (replace(AT, ending=EXITED), True),
    ],
)
def test_rest(moment: Moment, *, answer: bool | Need | None) -> None:
    assert at_rest(moment) is answer


@pytest.mark.parametrize(
    ("moment", "answer"),
    [
        (AT, LOOK),
        (replace(AT, activity=seen(BUSY)), None),
        (replace(AT, activity=seen(READING)), Need.LOG),
        (replace(AT, activity=seen(READING), is_drained=False), True),
        (replace(AT, activity=seen(READING), is_drained=True, match=STOPPED), False),
        (replace(AT, ending=EXITED), False),
        (replace(AT, has_person=True), False),
    ],
)
def test_keys_can_be_typed_when_the_program_is_ready(
    moment: Moment, *, answer: bool | Need | None
) -> None:
    asked: list[float] = []

    def is_ready(activity: Activity, waited_s: float) -> bool:
        asked.append(waited_s)
        return activity.only_awaits

    assert can_type(is_ready, 9.0, moment) is answer
    if answer is Need.LOG:
        assert partial(can_type, drains=False)(is_ready, 9.0, moment) is True
    assert set(asked) <= {1.0}


OUTER = PROMPT.shell
INNER = Shell(2, "bash", (3, 4))
STARTED = seen(replace(PROMPT, shell=INNER))
KEYS = replace(READING, modes=LINES._replace(is_canonical=False))


@pytest.mark.parametrize(
    ("moment", "answer"),
    [
        (AT, LOOK),
        (replace(AT, activity=seen(BUSY)), Later(10.05)),
        (replace(AT, ending=FAILED), Reason.DONE),
        (replace(AT, activity=STARTED, takes_commands=True), Reason.SHELL_STARTED),
        (replace(AT, activity=seen(READING)), DRAIN),
        (replace(AT, activity=seen(READING), is_drained=False), Reason.INPUT),
        (replace(AT, activity=seen(KEYS)), Later(10.05)),
        (replace(AT, activity=seen(KEYS, 0.4), is_drained=True), Reason.INPUT),
        (replace(AT, now=30.0, activity=seen(BUSY)), RunAction.INTERRUPT),
        (replace(AT, now=30.0, activity=seen(READING), is_drained=True), Reason.INPUT),
        (replace(AT, now=30.0, activity=seen(OVER)), DRAIN),
        (replace(AT, now=30.0, activity=seen(OVER), is_drained=True), Reason.LATE),
    ],
)
def test_end_of_a_run_in_a_pane_of_its_own(
    pane: StagedPane, moment: Moment, answer: object
) -> None:
    assert EndOfRun(pane, 30.0)(moment) == answer


def test_command_that_was_interrupted_gets_its_grace_period(pane: StagedPane) -> None:
    rule = EndOfRun(pane, 30.0)
    rule.interrupts = 1
    assert isinstance(rule(replace(AT, activity=seen(READING))), Later)


class Given:
    """What the kernel and the log tell of a job."""

    def __init__(self, **facts: Any) -> None:  # noqa: ANN401
        self.facts = {"begun": True, "closed": False, "mark": False, "runs": True, **facts}
        self.runtime_s = self.facts.pop("runtime_s", 0.0)
        self.is_aborted = self.facts.pop("aborted", False)
        self.shell = SimpleNamespace(
            is_running=lambda: self.facts["runs"],
            dialect=SimpleNamespace(has_editor=self.facts.pop("has_editor", True)),
            pid=1 << 30,
            start=(1, 2),
        )

    def has_begun(self) -> bool:
        return bool(self.facts["begun"])

    def is_closed(self) -> bool:
        return bool(self.facts["closed"])

    def has_end_mark(self) -> bool:
        return bool(self.facts["mark"])

    def is_done(self) -> bool:
        return self.has_end_mark() and self.is_closed()

    def conclude(self) -> None:
        pass

    remove = conclude
    start = code_before = None


DRAINED = replace(AT, is_drained=True)
BACK = replace(DRAINED, activity=seen(PROMPT))
LAST = replace(DRAINED, now=31.0)
CLOSED, DONE = Given(closed=True), Given(closed=True, mark=True)
TYPED, OPENED = Given(begun=False, closed=True), Given(mark=True)
JOBS: Sequence[tuple[Given, Moment, object]] = [
    # The mark alone ends nothing, since others may print it.
    (OPENED, AT, LOOK),
    (OPENED, replace(AT, activity=seen(BUSY)), Later(10.005)),
    (Given(), replace(AT, activity=seen(BUSY)), Later(10.05)),
    # Nor does the end that the kernel tells: the mark may be late.
    (DONE, AT, DRAIN),
    (DONE, DRAINED, Reason.DONE),
    (DONE, replace(AT, is_drained=False), LOOK),
    (DONE, replace(LAST, is_drained=False), Reason.LATE),
    (DONE, replace(AT, ending=EXITED), Reason.DONE),
    (CLOSED, replace(AT, ending=EXITED), Reason.EXITED),
    # Without a mark, the shell has to be at its prompt. It may have printed one until then.
    (CLOSED, DRAINED, LOOK),
    (CLOSED, replace(BACK, is_drained=None), DRAIN),
    (CLOSED, BACK, Reason.GIVEN_UP),
    (CLOSED, replace(DRAINED, activity=seen(BUSY)), LATER),
    (Given(closed=True, has_editor=False), DRAINED, RunAction.RESTORE),
    (Given(closed=True, has_editor=False), replace(DRAINED, has_person=True), LOOK),
    # A shell that was replaced may be a program that ends at once.
    (Given(closed=True, runs=False), DRAINED, Later(10.3)),
    # What the shell has not begun it may still begin.
    (TYPED, AT, LATER),
    (TYPED, replace(AT, now=31.0), LATER),
    (Given(begun=False, closed=True, runtime_s=1.1), AT, LOOK),
    (Given(begun=False, closed=True, runtime_s=1.1), BACK, RunAction.TAKE_BACK),
    (Given(begun=False, closed=True, runtime_s=11.0), replace(AT, activity=seen(BUSY)),
        RunAction.TAKE_BACK),
    # While it runs.
    (Given(), replace(AT, activity=STARTED, takes_commands=True), Reason.SHELL_STARTED),
    (Given(runs=False), replace(AT, activity=STARTED, takes_commands=True), LATER),
    (Given(), replace(AT, activity=seen(READING)), DRAIN),
    (Given(), replace(DRAINED, activity=seen(READING)), Reason.INPUT),
    (Given(), replace(LAST, activity=seen(BUSY)), RunAction.INTERRUPT),
    (Given(begun=False, runtime_s=0.6), LAST, RunAction.INTERRUPT),
    # Nothing is interrupted once the shell is back.
    (CLOSED, replace(LAST, activity=seen(BUSY)), RunAction.INTERRUPT),
    (CLOSED, replace(DRAINED, now=30.01, activity=seen(BUSY)), LATER),
]  # fmt: skip


@pytest.mark.parametrize(("job", "moment", "answer"), JOBS)
def test_end_of_a_run_in_a_shell(
    pane: StagedPane, job: Given, moment: Moment, answer: object
) -> None:
    found = EndOfJob(pane, cast("FileJob", job), 30.0)(moment)
    assert (told(found) if answer is LATER else found) == pytest.approx(answer)


HIDDEN = replace(seen(BLOCKED), is_unclear=True)
LONG_QUIET = replace(AT, touched_at=6.9, activity=HIDDEN)
ELSEWHERE: Sequence[tuple[Given, str, Moment, object]] = [
    # The mark ends it, and nothing else is needed.
    (OPENED, "", AT, Reason.DONE),
    (Given(mark=True, aborted=True), "", AT, Reason.GIVEN_UP),
    (OPENED, "", replace(AT, ending=EXITED), Reason.DONE),
    (Given(), "", replace(AT, ending=EXITED), Reason.EXITED),
    # Without the door, its last output may be late.
    (Given(runs=False), "", AT, Need.LOG),
    (Given(runs=False), "", DRAINED, LATER),
    (Given(runs=False), "", replace(DRAINED, now=10.4), Reason.SHELL_ENDED),
    # What is hidden seems to ask when it is quiet within a line.
    (Given(), "Name? ", AT, LOOK),
    (Given(), "Name? ", LONG_QUIET, Reason.QUIET),
    (Given(), "Name? ", replace(LONG_QUIET, touched_at=7.1), LATER),
    (Given(), "done\r\n", LONG_QUIET, LATER),
    (Given(), "\033[32mdone\r\n\033[0m", LONG_QUIET, LATER),
    (Given(), "Name? ", replace(LONG_QUIET, activity=seen(BLOCKED, 4.0)), LATER),
    # What is not hidden awaits, as here.
    (Given(), "", replace(AT, activity=seen(READING)), DRAIN),
    (Given(), "", replace(DRAINED, activity=seen(READING)), Reason.INPUT),
    # The mark may be late, and C-c would end `ssh -T`.
    (Given(), "", replace(LAST, activity=HIDDEN, is_drained=None), Need.LOG),
    (Given(), "", replace(LAST, activity=HIDDEN), RunAction.INTERRUPT),
]


@pytest.mark.parametrize(("job", "printed", "moment", "answer"), ELSEWHERE)
def test_end_of_a_run_in_a_shell_elsewhere(
    pane: StagedPane, job: Given, printed: str, moment: Moment, answer: object
) -> None:
    pane.print(printed)
    found = EndOfTypedJob(pane, cast("TypedJob", job), 30.0)(moment)
    assert told(found) == answer


def test_log_without_room_for_the_end_of_a_run_fails_it(pane: StagedPane) -> None:
    rule = EndOfJob(pane, cast("FileJob", CLOSED), 30.0)
    assert rule(AT) is DRAIN
    pane.losses += 1  # the drain has started the log's writer again
    assert rule(DRAINED) is RunAction.FAIL


def test_shell_that_was_replaced_is_told_when_its_pane_goes_on(
    pane: StagedPane, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = EndOfJob(pane, cast("FileJob", Given(closed=True, runs=False)), 30.0)
    rule(DRAINED)
    later = replace(DRAINED, now=10.4, activity=seen(BUSY))
    assert isinstance(rule(later), Later)  # pane.sh is about to tell its end
    following = "tmux_debug_mcp.panes.running.runs.processes."
    monkeypatch.setattr(f"{following}children", lambda _: [1])
    monkeypatch.setattr(f"{following}is_alive", lambda _: True)
    assert rule(replace(later, now=10.5)) is Reason.SHELL_ENDED
    monkeypatch.setattr(f"{following}read_living", lambda *_: True)
    assert rule(replace(later, now=10.6)) is Reason.REPLACED


STARTING = replace(PROMPT, waiting=WaitKind.NONE, shell_waiting=WaitKind.NONE)


@pytest.mark.parametrize(
    ("at_s", "snapshot", "answer"),
    [
        (0.0, PROMPT, OUTER),
        (0.04, BLOCKED, LATER),  # it may be about to give the terminal back
        (0.06, BLOCKED, False),
        (0.0, STARTING, LATER),
        (5.0, STARTING, LATER),
    ],
)
def test_shell_is_waited_for_until_it_is_at_its_prompt(
    pane: StagedPane, at_s: float, snapshot: Snapshot, answer: object
) -> None:
    rule = AtPrompt(pane, 0.05)
    assert rule(Moment(0.0)) is LOOK
    moment = Moment(at_s, activity=seen(snapshot), takes_commands=True)
    assert told(rule(moment)) == answer
    assert rule(replace(moment, ending=EXITED)) is False
    if snapshot is BLOCKED:
        before = Moment(9.9, activity=moment.activity, has_begun=False)
        assert told(rule(before)) is LATER
        assert rule(replace(before, now=10.0)) is False
    if snapshot is STARTING:
        assert OUTER
        pane.terminal.known_shells.add(OUTER.start)
        assert told(rule(replace(moment, now=at_s + 0.6))) is False


@pytest.mark.parametrize(
    ("is_starting", "has_children", "unchanged_s", "waited_s", "is_worth_it"),
    [
        (False, False, 0.01, 0.01, True),  # on its way
        (False, False, 0.2, 0.2, False),  # quiet for longer than the patience with it
        (False, False, 0.0, 0.6, False),  # at work for long
        (True, False, 0.1, 5.0, True),  # it reads its settings
        (True, False, 0.6, 5.0, False),  # it asks for something
        (True, True, 0.6, 5.0, True),  # it runs something
        (True, True, 0.6, 11.0, False),
    ],
)
def test_shell_is_waited_for_as_long_as_it_comes(
    pane: StagedPane,
    *,
    is_starting: bool,
    has_children: bool,
    unchanged_s: float,
    waited_s: float,
    is_worth_it: bool,
) -> None:
    rule = AtPrompt(pane, 0.05, 10.0, to_run=True)
    activity = replace(seen(STARTING), unchanged_s=unchanged_s)
    moment = Moment(0.0, activity=activity, takes_commands=is_starting, has_children=has_children)
    rule(moment)
    assert isinstance(rule(replace(moment, now=waited_s)), Later) is is_worth_it


async def test_exit_code_is_not_waited_for_once_the_pane_has_ended(
    pane: StagedPane, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Given(closed=True, runs=False)

    async def give(*_: object) -> Given:
        pane.exit(0)
        return job

    monkeypatch.setattr(giving, "give", give)
    async with clock.jumping():
        assert await giving.last_exit_code(pane, cast("FileJob", job)) is None
    assert clock.now() == 0.0
