"""Giving commands to shells elsewhere: behind ssh, in a container, or of another user.

A pane leads elsewhere while such a program, its *door*, has the terminal. What reads the terminal
on the other side is hidden from us. So one short line asks first: only a shell answers that, with a
mark. Nothing is installed there, and no file is left: the shell reads the command from its
terminal, in lines that any terminal takes.
"""

import contextlib
import math
import os
import re
import secrets

import anyio

from tmux_debug_mcp.clock import Times
from tmux_debug_mcp.errors import (
    ElsewhereError,
    JobNotTakenError,
    OutcomeUnknownError,
    ToolError,
)
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.reading import clean_text
from tmux_debug_mcp.panes.keyboard import SentStep
from tmux_debug_mcp.panes.looking.activity import Awaits, Snapshot, awaited
from tmux_debug_mcp.panes.looking.snapshot import RELAYS
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.prompts import MAX_PROMPT_BYTES
from tmux_debug_mcp.panes.shells.dialects import (
    BASH_ELSEWHERE,
    DIALECTS,
    ELSEWHERE,
    END_OF_READING,
    FISH_ELSEWHERE,
    QUESTION,
    READING_SHELLS,
    SH_ELSEWHERE,
    SHELLS,
    ElsewhereDialect,
    Shell,
    filled,
    foreground_shell,
    syntax_error,
)
from tmux_debug_mcp.panes.shells.jobs import Door, Job, TypedJob
from tmux_debug_mcp.panes.watching import Later, Moment, Need, until
from tmux_debug_mcp.vt.steps import Keystrokes, pressed

# A last line that asks for a secret, which no question of ours may answer.
_ASKS_FOR_SECRET = re.compile(
    r"(?i)\b(?:pass[ -]?(?:word|phrase|code)|passwort|mot de passe|pin|secret|token|code|otp)"
    r"\b.*[:?]\s*$"
)
# An answer of a shell: its kind, or backslashes. See `QUESTION`.
_ANSWER = r"\033\]7777;@nonce@;(\d|\\{1,2})\a"
_FISH = "\\"
# An answer comes after the echo of the question, and maybe messages of the shell.
_MAX_ANSWER_BYTES = 1 << 16
# Errors show so much of the last line.
_MAX_SHOWN_CHARACTERS = 100


def door(snapshot: Snapshot) -> Door | None:
    """Return the program that leads elsewhere from a pane, if one does.

    A shell whose prompt the kernel shows is none: see `door_of`.
    """
    stat = processes.read_stat(snapshot.pid) if snapshot.pid else None
    if stat is None or snapshot.shell:
        return None
    program = processes.program(stat.pid)
    is_hidden = snapshot.relays or (not program and _is_anothers(stat.pid))
    if not (is_hidden or snapshot.inside or program in READING_SHELLS):
        return None
    return Door(stat.pid, snapshot.foreground or program, stat.starttime)


def _is_anothers(pid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid != os.geteuid()
    except OSError:
        return False


def leads_to(pane: Pane, known: Door | None = None) -> Door | None:
    """Return the program that leads elsewhere from a pane now, such as a `known` door."""
    if foreground_shell(pane.leader.pid):  # as in nearly all runs
        return None
    snapshot, last = pane.terminal.look().snapshot, pane.jobs.last
    if known is None and isinstance(last, TypedJob):
        known = last.shell
    # While it passes on what was printed, it isn't seen to wait for keys.
    if known and known.pid == snapshot.pid and known.is_running():
        return known
    return door(snapshot)


def passes_keys_on(pane: Pane) -> bool:
    """Return whether the program in front passes keys on to another, which may be hidden."""
    if leads_to(pane):
        return True
    pid = pane.terminal.look().snapshot.pid
    return pid is not None and processes.program(pid) in RELAYS


def door_of(shell: Shell) -> Door:
    """Return a shell that can't read our files as the door to itself."""
    starttime, _ = shell.start
    return Door(shell.pid, shell.name, starttime)


def opens_at(moment: Moment, job: Job, sent: SentStep | None, times: Times) -> float:
    """Return when it counts that a job has led to something elsewhere, or further on.

    That is once it is quiet. A job of a shell elsewhere may only have if something was `sent` since
    then: else it asks for that.
    """
    if isinstance(job, TypedJob) and (sent is None or sent.number == job.sent):
        return math.inf
    snapshot = moment.activity.snapshot if moment.activity else None
    if snapshot is None or snapshot.pid is None:
        return math.inf
    if door(snapshot) or (isinstance(job, TypedJob) and job.shell.pid == snapshot.pid):
        return moment.touched_at + times.quiet_s
    # A program that passes on what was printed isn't seen to wait for keys.
    is_relay = processes.program(snapshot.pid) in RELAYS
    return moment.now + times.poll_s if is_relay else math.inf


async def give_elsewhere(
    pane: Pane, to: Door, shell: Shell | None, command: str, deadline: float
) -> TypedJob | str:
    """Give a command to the shell behind a door; or return bash's message why it can't run.

    `shell` is the shell itself, if the kernel shows that it is at its prompt.

    Raises:
        ElsewhereError: No shell may be asked there, or none answers.
        JobNotTakenError: The shell has not read the command, and never will.
        OutcomeUnknownError: It may have.
    """
    last, pane.jobs.last = pane.jobs.last, None
    if last:
        last.next_from = pane.log.size
    sent, previous = pane.keyboard.last_sent, None
    if isinstance(last, TypedJob) and last.shell == to and sent and sent.number == last.sent:
        previous = last  # and nothing was typed since
    if shell:
        dialect = FISH_ELSEWHERE if shell.name == "fish" else SH_ELSEWHERE
    else:
        await _check_may_ask(pane, to, has_run=previous is not None)
        dialect = previous.dialect if previous and previous.dialect else await _ask(pane, to)
    job = TypedJob(command, to, pane.log, pane.clock)
    try:
        dialect = ELSEWHERE[await _answer(pane, to, dialect.line, job.key)]
        error = await syntax_error(pane.clock, command) if dialect is BASH_ELSEWHERE else None
    except (ToolError, anyio.get_cancelled_exc_class()):
        await _end_reading(pane)
        raise
    if error:
        await _end_reading(pane)
        return error
    pane.jobs.last = job
    try:
        text = job.keys(dialect, (previous.exit_code or 0) if previous else 0)
        job.sent = await _type(pane, Keystrokes(text, is_paste=False, keys=()))
        pane.keyboard.release_line()
        pane.jobs.typed(job)
        await _wait_for_begin(pane, job, deadline)
    except anyio.get_cancelled_exc_class():
        pane.leave_run(job)
        raise
    except JobNotTakenError:
        pane.jobs.last = None
        raise
    except ToolError as cause:
        pane.leave_run(job)
        reason = str(cause)
        if isinstance(cause, ElsewhereError):
            reason = f"Behind {to.name}, {cause.why}."
        raise OutcomeUnknownError(reason) from cause
    return job


async def _check_may_ask(pane: Pane, to: Door, *, has_run: bool) -> None:
    """Wait until the pane is quiet, and raise ElsewhereError unless a prompt may be there.

    A shell that `has_run` a command just now is about to print one.
    """
    times = pane.clock.times
    is_still = await _quiet(pane, times.redrawn_quiet_s if has_run else times.quiet_s)
    await pane.check_running()
    snapshot = pane.terminal.look().snapshot
    line = await last_line(pane.log, 0, pane.log.size)
    inside = processes.program(snapshot.inside) if snapshot.inside else None
    asks, dialect = awaited(snapshot), DIALECTS.get(inside or "")
    # ssh itself asks whether to go on. A shell with a line editor reads no lines at its prompt.
    is_input = asks is Awaits.INPUT and (snapshot.relays or (dialect and dialect.has_editor))
    why = None
    if not is_still:
        why = "something prints there"
    elif inside and inside not in SHELLS and not snapshot.relays:
        why = f"{inside} runs there, not a shell"
    elif is_input or asks is Awaits.HIDDEN_INPUT or _ASKS_FOR_SECRET.search(line):
        why = f"something is asked there, not a command: {line[-_MAX_SHOWN_CHARACTERS:]}"
    elif await pane.is_drawn_on():
        why = "a program draws on the screen"
    elif pane.keyboard.may_have_text:
        why = "what was typed there without Enter may still be on the line. Press Enter or C-c"
    if why:
        raise ElsewhereError(pane.id, to.name, why)


async def _ask(pane: Pane, to: Door) -> ElsewhereDialect:
    """Ask what reads the terminal elsewhere for an answer that only a shell gives."""
    answer = await _answer(pane, to, QUESTION, secrets.token_hex(8))
    await _quiet(pane, pane.clock.times.redrawn_quiet_s)  # its prompt follows
    return FISH_ELSEWHERE if answer == _FISH else SH_ELSEWHERE


async def _quiet(pane: Pane, quiet_s: float) -> bool:
    """Wait until nothing was printed or typed for this long, or return False."""

    def is_quiet(moment: Moment) -> bool | Later:
        quiet_at = moment.touched_at + quiet_s
        return True if moment.ending or moment.now >= quiet_at else Later(quiet_at)

    times = pane.clock.times
    return (await until(pane, is_quiet, pane.clock.now() + times.prompt_s))[0] or False


async def last_line(log: Log, start: int, end: int) -> str:
    """Return the last line of the output between two cursors, without blanks at its ends."""
    start = max(start, log.kept_from, end - MAX_PROMPT_BYTES)
    text = await clean_text(log, start, log.read(start, end - start))
    return text.rpartition("\n")[2].strip()


async def _answer(pane: Pane, to: Door, line: str, nonce: str) -> str:
    """Type a line, and return how the shell answers it.

    Raises:
        ElsewhereError: No shell does.
    """
    log, start = pane.log, pane.log.size
    line, answer = filled(line, nonce=nonce), filled(_ANSWER, nonce=nonce).encode()
    found: re.Match[bytes] | None = None

    def is_answered(moment: Moment) -> bool | Need | None:
        nonlocal found
        if moment.size > start:
            found = re.search(answer, log.read(start, _MAX_ANSWER_BYTES))
        if moment.is_due and moment.is_drained is None:  # the log may be late
            return Need.LOG
        return True if found or moment.ending else None

    await _type(pane, Keystrokes(line, is_paste=False, keys=("Enter",)))
    answer_s = pane.clock.times.answer_elsewhere_s
    await until(pane, is_answered, pane.clock.now() + answer_s)
    if found is None:
        await pane.check_running()
        shown = (await last_line(log, 0, log.size))[-_MAX_SHOWN_CHARACTERS:]
        why = f"no shell answered within {answer_s:g} s"
        if len(line) <= _MAX_SHOWN_CHARACTERS:  # ours is long, and tells nothing
            why += f". Typed was `{line.strip()}`"
        raise ElsewhereError(pane.id, to.name, f"{why}; the last line is `{shown}`")
    return found[1].decode()


async def _type(pane: Pane, keystrokes: Keystrokes) -> int:
    """Type keystrokes; return their number."""
    with anyio.CancelScope(shield=True):
        async with pane.keyboard.lock:
            # Waits needn't know the text, which a shell echoes in a line of its own or not at all.
            sent = pane.keyboard.begin(pressed(("Enter",)))
            await pane.keyboard.type(keystrokes)
    return sent.number


async def _end_reading(pane: Pane) -> None:
    """Have a shell read no more of its terminal, and run nothing."""
    with contextlib.suppress(ToolError):  # a person has the keyboard, or the pane has ended
        await _type(pane, Keystrokes(END_OF_READING, is_paste=False, keys=("Enter",)))


async def _wait_for_begin(pane: Pane, job: TypedJob, deadline: float) -> None:
    """Wait until the shell has read a command.

    Raises:
        ElsewhereError: It has not, but may.
        JobNotTakenError: It has not, and never will.
    """

    def has_begun(moment: Moment) -> bool | Need | None:
        job.has_end_mark()
        if job.has_begun() or moment.ending or not job.shell.is_running():
            return True
        if moment.is_due and moment.is_drained is None:  # the log may be late
            return Need.LOG
        return None

    losses, least_s = pane.losses, pane.clock.times.answer_elsewhere_s
    begun, moment = await until(pane, has_begun, max(deadline, pane.clock.now() + least_s))
    if begun:
        return
    if not moment.is_drained:  # what would be typed could go to the command
        raise ElsewhereError(pane.id, job.shell.name, "the log is late")
    await _end_reading(pane)
    # The shell reads its lines in order, so its answer shows what it has read before.
    await _ask(pane, job.shell)
    job.has_end_mark()
    if pane.losses != losses:
        raise ElsewhereError(pane.id, job.shell.name, "some of the log was lost")
    if not job.has_begun():
        raise JobNotTakenError(pane.id, f"the shell behind {job.shell.name}")
