"""Giving commands to shells elsewhere: behind ssh, in a container, or of another user.

A pane leads elsewhere while such a program, its *door*, has the terminal. What reads the terminal
on the other side is hidden from us. So one short line asks first: only a shell answers that, with a
mark. Nothing is installed there, and no file is left: the shell reads the command from its
terminal, in lines that any terminal takes.
"""

import os
import re
import secrets

import anyio

from tmux_debug_mcp.clock import Times
from tmux_debug_mcp.errors import ElsewhereError, JobNotTakenError, OutcomeUnknownError
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.reading import clean_text
from tmux_debug_mcp.panes.looking.activity import Awaits, Snapshot, awaited
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.shells.dialects import (
    BASH_ELSEWHERE,
    ELSEWHERE,
    FISH_ELSEWHERE,
    QUESTION,
    READING_SHELLS,
    SH_ELSEWHERE,
    SHELLS,
    Shell,
    foreground_shell,
    unfinished,
)
from tmux_debug_mcp.panes.shells.jobs import Door, Job, TypedJob
from tmux_debug_mcp.panes.watching import Later, Moment, until
from tmux_debug_mcp.vt.steps import INTERRUPT, Keystrokes, pressed

# A last line that asks for a secret, which no question of ours may answer.
_ASKS_FOR_SECRET = re.compile(r"(?i)\b(?:pass(?:word|phrase|code)|pin|secret|code|otp)\b.*[:?]\s*$")
# An answer of a shell: what its reader says of it, or backslashes. See `QUESTION`.
_ANSWER = r"\033\]7777;{nonce};(\d|\\{{1,2}})\a"
_FISH = "\\"
# An answer comes after the echo of the question, and maybe messages of the shell.
_MAX_ANSWER_BYTES = 1 << 16
# Prompts are shorter, including the sequences that draw them.
MAX_PROMPT_BYTES = 4096
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
    """Return the program that leads elsewhere from a pane now, as one that is known may do."""
    if foreground_shell(pane.leader.pid):  # as in nearly all runs
        return None
    snapshot, last = pane.terminal.look().snapshot, pane.jobs.last
    if known is None and isinstance(last, TypedJob):
        known = last.shell
    # While it passes on what was printed, it isn't seen to wait for keys.
    if known and known.pid == snapshot.pid and known.is_running():
        return known
    return door(snapshot)


def door_of(shell: Shell) -> Door:
    """Return a shell that can't read our files as the door to itself."""
    starttime, _ = shell.start
    return Door(shell.pid, shell.name, starttime)


def has_opened(moment: Moment, job: Job, times: Times) -> bool:
    """Tell whether a job of a shell here has led to something elsewhere that is quiet.

    What a job of a shell elsewhere has led to can't be told from what asks for input.
    """
    if isinstance(job, TypedJob) or moment.now < moment.touched_at + times.quiet_s:
        return False
    return moment.activity is not None and door(moment.activity.snapshot) is not None


def is_within_line(log: Log, start: int) -> bool:
    """Tell whether output since a cursor ends within a line, as a prompt does."""
    tail_start = max(start, log.kept_from, log.size - 1)
    return log.read(tail_start, log.size - tail_start).strip(b"\r\n") != b""


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
    previous = last if isinstance(last, TypedJob) and last.shell == to else None
    dialect, code_before = None, 0
    if previous:
        dialect, sent = previous.dialect, pane.keyboard.last_sent
        if sent and sent.number == previous.sent:
            code_before = previous.exit_code or 0
    if shell:
        dialect = FISH_ELSEWHERE if shell.name == "fish" else SH_ELSEWHERE
    else:
        await _check_may_ask(pane, to, previous)
    is_shell = shell is not None
    if dialect is None:
        answer = await _answer(pane, to, QUESTION, secrets.token_hex(8))
        dialect = FISH_ELSEWHERE if answer == _FISH else SH_ELSEWHERE
        is_shell = True
    job = TypedJob(command, to, pane.log, pane.clock)
    try:
        dialect = ELSEWHERE[await _answer(pane, to, dialect.reader, job.key)]
    except ElsewhereError:
        if is_shell:
            await pane.keyboard.press(INTERRUPT)
        raise
    error = await unfinished(pane.clock, command) if dialect is BASH_ELSEWHERE else None
    if error:
        await pane.keyboard.press(INTERRUPT)  # it reads no command then
        return error
    text = job.keys(dialect, code_before)
    job.sent = await _type(pane, Keystrokes(text, is_paste=False, keys=()))
    pane.keyboard.release_line()
    pane.jobs.typed(job)
    await _wait_for_begin(pane, job, deadline)
    return job


async def _check_may_ask(pane: Pane, to: Door, previous: TypedJob | None) -> None:
    """Wait until the pane is quiet, and raise ElsewhereError unless a prompt may be there."""
    times = pane.clock.times
    quiet_s = times.redrawn_quiet_s if previous else times.quiet_s

    def is_quiet(moment: Moment) -> bool | Later:
        quiet_at = moment.touched_at + quiet_s
        return True if moment.ending or moment.now >= quiet_at else Later(quiet_at)

    await until(pane, is_quiet, pane.clock.now() + times.prompt_s)
    await pane.check_running()
    snapshot = pane.terminal.look().snapshot
    line = await last_line(pane.log, 0, pane.log.size)
    # ssh itself asks for passwords, and whether to go on.
    asks = awaited(snapshot) if snapshot.relays else None
    inside = processes.program(snapshot.inside) if snapshot.inside else None
    why = None
    if inside and inside not in SHELLS:
        why = f"{inside} runs there, not a shell"
    elif asks in (Awaits.INPUT, Awaits.HIDDEN_INPUT) or _ASKS_FOR_SECRET.search(line):
        why = f"something is asked there, not a command: {line[-_MAX_SHOWN_CHARACTERS:]}"
    elif await pane.is_drawn_on():
        why = "a program draws on the screen"
    elif pane.keyboard.may_have_text:
        why = "what was typed there without Enter may still be on the line. Press Enter or C-c"
    if why:
        raise ElsewhereError(pane.id, to.name, why)


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
    line, answer = line.format(nonce=nonce), _ANSWER.format(nonce=nonce).encode()
    found: re.Match[bytes] | None = None

    def is_answered(moment: Moment) -> bool | None:
        nonlocal found
        if moment.size > start:
            found = re.search(answer, log.read(start, _MAX_ANSWER_BYTES))
        return True if found or moment.ending else None

    await _type(pane, Keystrokes(line, is_paste=False, keys=("Enter",)))
    answer_s = pane.clock.times.answer_elsewhere_s
    await until(pane, is_answered, pane.clock.now() + answer_s)
    if found is None:
        await pane.check_running()
        shown = (await last_line(log, 0, log.size))[-_MAX_SHOWN_CHARACTERS:]
        why = f"no shell answered within {answer_s:g} s. Typed was `{line.strip()}`"
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


async def _wait_for_begin(pane: Pane, job: TypedJob, deadline: float) -> None:
    """Wait until the shell has read a command.

    Raises:
        JobNotTakenError: It has not, and never will.
        OutcomeUnknownError: It has not, but may.
    """

    def has_begun(moment: Moment) -> bool | None:
        job.has_end_mark()
        return True if job.has_begun() or moment.ending or not job.shell.is_running() else None

    if (await until(pane, has_begun, deadline))[0]:
        return
    await pane.keyboard.press(INTERRUPT)
    try:
        # The shell reads one line after the other, so its answer shows what it has read before.
        await _answer(pane, job.shell, QUESTION, secrets.token_hex(8))
    except ElsewhereError as error:
        pane.leave_run(job)
        raise OutcomeUnknownError(str(error)) from error
    job.has_end_mark()
    if not job.has_begun():
        raise JobNotTakenError(pane.id, f"the shell behind {job.shell.name}")
