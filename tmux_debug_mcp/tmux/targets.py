"""What is on a tmux server, and what targets mean there: no I/O.

Targets are tmux's: `session:window.pane`, each a name, an index or an id, or an id alone. They are looked up here and
exactly, since tmux itself takes a prefix for a name and what is active for what is not there. Only ids go to tmux.

1. `%3`, `@1` and `$0` are ids, which mean the same everywhere. What is called so is meant with `=`: `=$0`.
2. Without a colon, a target that is no id is the name of a session.
3. Behind the colon stands a window: its index, its id or its name. A window's name may have dots; a dot and a number at
   the end, or an id, are a pane in it.
4. Where a window or a pane is wanted and not told, it is the active one.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tmux_debug_mcp.errors import AmbiguousTargetError, TargetNotFoundError
from tmux_debug_mcp.vt.sequences import plain_name

_PANE = re.compile(r"(.*)\.(\d+|%\d+)", re.DOTALL)
_PANE_ID, _WINDOW_ID, _SESSION_ID = re.compile(r"%\d+"), re.compile(r"@\d+"), re.compile(r"\$\d+")

# What is asked of tmux for every pane. Text that others choose comes between separators that nobody can guess.
FIELDS = (
    *("session_id", "session_name", "session_attached", "window_id", "window_index", "window_name", "window_active"),
    *("pane_id", "pane_index", "pane_active", "pane_width", "pane_height", "pane_dead", "pane_dead_status"),
    *("pane_current_command", "history_size", "pane_pid", "pane_tty"),
)


@dataclass(frozen=True, slots=True)
class Offsets:
    """What is added to the numbers that a tmux server gives to sessions, windows and panes.

    A tmux server that takes the place of one that died counts from 0 again. So that no id ever means two things, ours
    are its numbers behind the last that were used before; the first of them is that of the session that holds panes.
    """

    sessions: int = 0
    windows: int = 0
    panes: int = 0

    def session(self, tmux_id: str) -> str:
        """Return our id of a session."""
        return f"${int(tmux_id[1:]) + self.sessions}"

    def window(self, tmux_id: str) -> str:
        """Return our id of a window."""
        return f"@{int(tmux_id[1:]) + self.windows}"

    def pane(self, tmux_id: str) -> str:
        """Return our id of a pane."""
        return f"%{int(tmux_id[1:]) + self.panes}"

    def behind(self, session: str, window: str, pane: str) -> "Offsets":
        """Return those for a server whose ids are to come behind these ids of ours too."""
        free = (int(our_id[1:]) + 1 for our_id in (session, window, pane))
        return Offsets(*map(max, (self.sessions, self.windows, self.panes), free))


@dataclass(frozen=True, slots=True)
class PaneRow:
    """A pane of a tmux server, with its window and session: tmux's variables of these names, with our ids.

    Attributes:
        tmux_session: The session by tmux's own id, as its commands need it; and so on.
    """

    session_id: str
    session_name: str
    session_attached: str
    window_id: str
    window_index: str
    window_name: str
    window_active: str
    pane_id: str
    pane_index: str
    pane_active: str
    pane_width: str
    pane_height: str
    pane_dead: str
    pane_dead_status: str
    pane_current_command: str
    history_size: str
    pane_pid: str
    pane_tty: str
    tmux_session: str = ""
    tmux_window: str = ""
    tmux_pane: str = ""


def panes_format(separator: str) -> str:
    """Return the format to give to `list-panes -a -F`."""
    return separator + f"{separator}".join(f"#{{{field}}}" for field in FIELDS) + separator


def parse(output: str, separator: str, offsets: Offsets = Offsets()) -> list[PaneRow]:
    """Return the panes of what tmux printed with that format; a window that is in two sessions is in both."""
    words = output.split(separator)[1:]
    size = len(FIELDS) + 1  # behind the last one comes the line's end
    rows = (PaneRow(*words[start : start + size - 1]) for start in range(0, len(words) - size + 1, size))
    return [
        replace(
            row,
            session_id=offsets.session(row.session_id),
            window_id=offsets.window(row.window_id),
            pane_id=offsets.pane(row.pane_id),
            pane_current_command=plain_name(row.pane_current_command),
            tmux_session=row.session_id,
            tmux_window=row.window_id,
            tmux_pane=row.pane_id,
        )
        for row in rows
    ]


def find_session(rows: Sequence[PaneRow], target: str) -> PaneRow:
    """Return a row of the session that a target means.

    Raises:
        TargetNotFoundError: There is none.
    """
    if _PANE_ID.fullmatch(target) or _WINDOW_ID.fullmatch(target):
        return find_pane(rows, target)
    panes, window = _split(rows, target, target)
    return find_pane(rows, target) if window else panes[0]


def names_less_than_session(rows: Sequence[PaneRow], target: str) -> bool:
    """Tell whether a target means a window or a pane of a session.

    Raises:
        TargetNotFoundError: There is no such session.
    """
    is_id = _PANE_ID.fullmatch(target) or _WINDOW_ID.fullmatch(target)
    return bool(is_id or _split(rows, target, target)[1])


def find_panes(rows: Sequence[PaneRow], target: str) -> list[PaneRow]:
    """Return the rows of the session that a target means; where it tells a window or a pane, of that window.

    Raises:
        TargetNotFoundError: There is none.
        AmbiguousTargetError: Several windows of the session have the name.
    """
    if not (_PANE_ID.fullmatch(target) or _WINDOW_ID.fullmatch(target)):
        panes, window = _split(rows, target, target)
        if not window:
            return panes
    pane = find_pane(rows, target)
    return [row for row in rows if (row.session_id, row.window_index) == (pane.session_id, pane.window_index)]


def find_pane(rows: Sequence[PaneRow], target: str) -> PaneRow:
    """Return the row of the pane that a target means; of a window or a session, its active one.

    Raises:
        TargetNotFoundError: There is none.
        AmbiguousTargetError: Several windows of the session have the name.
    """
    if _PANE_ID.fullmatch(target):
        return _first(rows, lambda row: row.pane_id == target, target, "there is no pane of this id")
    try:
        return _active(_panes_of_window(rows, target, target))
    except TargetNotFoundError:
        match = _PANE.fullmatch(target)
        if match is None:
            raise
    window, pane = match.groups()
    panes = _panes_of_window(rows, window, target)
    return _first(panes, lambda row: pane in (row.pane_index, row.pane_id), target, f"its window has no pane '{pane}'")


def _panes_of_window(rows: Sequence[PaneRow], target: str, whole: str) -> list[PaneRow]:
    """Return the panes of a window; of a session's name alone, those of its active one."""
    if _WINDOW_ID.fullmatch(target):
        found = [row for row in rows if row.window_id == target]
        if not found:
            raise TargetNotFoundError(whole, "there is no window of this id")
        return found
    panes, window = _split(rows, target, whole)
    if not window:
        return [row for row in panes if row.window_active == "1"]
    if _WINDOW_ID.fullmatch(window):
        found = [row for row in panes if row.window_id == window]
    else:
        window = window.removeprefix("=")
        by_index = [row for row in panes if row.window_index == window]
        found = by_index or [row for row in panes if row.window_name == window]
    if len(ids := list(dict.fromkeys(row.window_id for row in found))) > 1:
        raise AmbiguousTargetError(whole, ids)
    if not found:
        raise TargetNotFoundError(whole, f"session '{panes[0].session_name}' has no window '{window}'")
    return found


def _split(rows: Sequence[PaneRow], target: str, whole: str) -> tuple[list[PaneRow], str]:
    """Return the panes of the session that a target begins with, and the rest; newer tmux has names with colons."""
    ends = [len(target), *(at for at in reversed(range(len(target))) if target[at] == ":")]
    for end in ends:
        if panes := [row for row in rows if _is_session(row, target[:end])]:
            return panes, target[end + 1 :]
    name = target.partition(":")[0].removeprefix("=")
    raise TargetNotFoundError(whole, f"there is no session '{name}'")


def _is_session(row: PaneRow, word: str) -> bool:
    return row.session_id == word if _SESSION_ID.fullmatch(word) else row.session_name == word.removeprefix("=")


def _active(panes: Sequence[PaneRow]) -> PaneRow:
    return next((row for row in panes if row.pane_active == "1"), panes[0])


def _first(rows: Iterable[PaneRow], is_meant: Callable[[PaneRow], bool], target: str, reason: str) -> PaneRow:
    for row in rows:
        if is_meant(row):
            return row
    raise TargetNotFoundError(target, reason)
