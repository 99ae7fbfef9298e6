"""Hidden input: whether and which program awaits it, and whether a secret was shown anyway.

A terminal may show a secret at any time after it was typed. We look only right after that.

A secret is meant for the program that asked for it. While its giver looks it up, that program may
end, and another program ask: so whoever read when it was asked for must read when it is typed.
"""

import re

from tmux_debug_mcp.errors import NotAwaitedError, OtherReaderError
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.reading import clean_text
from tmux_debug_mcp.vt.printable import plain_name

from .looking.activity import Awaits, Snapshot, awaited
from .pane import Pane
from .watching import Moment, Need, until

# Processes that read a terminal: of each the pid, its start, the start of its stack, which exec(2)
# changes, and its name, since the kernel hides the stack of another user's process.
Readers = frozenset[tuple[int, int, int, str]]

# We look for a secret in this much of what is printed while it is typed.
_MAX_SHOWN_BYTES = 1 << 16
# A shorter secret, such as `y`, is part of many words, and programs may print it by chance. So it
# is an echo only as a separate word, and that proves nothing.
_MIN_SHOWN_CHARACTERS = 4
# What may come between two characters of an echo: the end of a row, colours. An end of a row has
# lost the blanks before it.
_COLOUR = r"\033\[[0-9;:]*m"
_BETWEEN = rf"(?:\n|{_COLOUR})*"
_BLANKS = rf"(?:{_COLOUR})*[ \n](?:[ \n]|{_COLOUR})*"
# The echo of a longer line is found only without these.
_MAX_COLOURED = 1000


def readers_of(snapshot: Snapshot) -> Readers:
    """Return the processes that read the terminal, given a snapshot that was just taken."""
    stats = map(processes.read_stat, {pid for pid, _ in snapshot.readers})
    return frozenset(
        (stat.pid, stat.starttime, stat.start_stack, stat.comm) for stat in stats if stat
    )


async def check_hidden_input(pane: Pane) -> Readers:
    """Check that a pane awaits hidden input now, and return who reads it.

    Raises:
        NotAwaitedError: It does not, or that is not known.
    """
    await pane.check_running()
    # Output that reaches the log late looks like activity.
    _, moment = await until(pane, _is_sure, pane.clock.now() + pane.clock.times.quiet_s)
    if moment.activity is None or moment.activity.awaits is not Awaits.HIDDEN_INPUT:
        raise NotAwaitedError(pane.id)
    return readers_of(moment.activity.snapshot)


def _is_sure(moment: Moment) -> bool | Need | None:
    """Decide, as a rule, that it is known what a program awaits, or that it has ended."""
    activity = moment.activity
    if activity is None:
        return True if moment.ending else Need.LOOK
    return not activity.is_likely or bool(activity.awaits or activity.shell) or None


def check_readers(pane: Pane, expected: Readers) -> None:
    """Check, right before a secret is typed, that nobody reads it but those who were seen to.

    Raises:
        NotAwaitedError: Nobody awaits hidden input now.
        OtherReaderError: Another program does.
    """
    snapshot = pane.terminal.look().snapshot
    if awaited(snapshot) is not Awaits.HIDDEN_INPUT:
        raise NotAwaitedError(pane.id)
    others = readers_of(snapshot) - expected
    if others:
        names = ", ".join(f"{plain_name(name)} (pid {pid})" for pid, _, _, name in sorted(others))
        raise OtherReaderError(pane.id, names)


async def is_shown(pane: Pane, secret: str, since: int) -> bool:
    """Return whether a secret stands in what was printed from a cursor on, as far as we know.

    A program may turn echo on between our look and the typing, or print what it reads.
    """
    if len(secret.strip(" ")) < _MIN_SHOWN_CHARACTERS:
        return False
    printed = pane.log.read(since, _MAX_SHOWN_BYTES)
    text = await clean_text(pane.log, since, printed)
    return secret.encode() in printed or shown_as(secret).search(text) is not None


def shown_as(secret: str) -> re.Pattern[str]:
    """Return an expression for a line as terminals show it: wrapped, and with its colours."""
    between = _BETWEEN if len(secret) <= _MAX_COLOURED else ""
    words = [between.join(map(re.escape, word)) for word in secret.split(" ") if word]
    expression = _BLANKS.join(words)
    if len(secret) < _MIN_SHOWN_CHARACTERS:
        expression = rf"(?<!\w){expression}(?!\w)"
    return re.compile(expression)
