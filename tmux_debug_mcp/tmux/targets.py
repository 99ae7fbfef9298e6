"""The panes of a tmux server, and which of them a target means. No I/O.

Targets have tmux's syntax, `session:window.pane`. But they are looked up here, exactly, and tmux
gets only ids: tmux itself accepts a prefix for a name, and falls back to what is active.

1. `%3`, `@1` and `$0` alone are ids. `=$0` means the session that is named `$0`.
2. Any other target without a colon is the name of a session.
3. After the colon comes a window: its index, its id or its name. Window names may have dots, so
   only a dot and a number, or a dot and a pane id, at the end mean a pane of the window.
4. A target without a window means the active window, and without a pane the active pane.
5. A target that matches nothing raises TargetNotFoundError; the name of several windows of its
   session, AmbiguousTargetError.
6. What depends on a client's current session, window or pane means nothing here: `:0`, `!`, `+1`,
   `{last}` and the like. If it isn't a name, the error says so.

Source: tmux(1), "COMMANDS", for the syntax; the exactness is ours.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from tmux_debug_mcp.errors import AmbiguousTargetError, TargetNotFoundError
from tmux_debug_mcp.vt.printable import plain_name

_PANE = re.compile(r"(.*)\.(\d+|%\d+)", re.DOTALL)
_PANE_ID = re.compile(r"%\d+")
_WINDOW_ID = re.compile(r"@\d+")
_SESSION_ID = re.compile(r"\$\d+")
# At the start of a target, or of its window or pane. Source: tmux(1), "COMMANDS".
_RELATIVE = re.compile(r"(?:^|[:.])(\{[a-z-]+\}|[+-]\d*|[!^$~@=])(?=[:.]|$)")


@dataclass(frozen=True, slots=True)
class Offsets:
    """The difference between our numbers of sessions, windows and panes and tmux's.

    A new tmux server counts from 0 again. Ours go on after the last one that an earlier server
    used, so an id never means two things.
    """

    sessions: int = 0
    windows: int = 0
    panes: int = 0

    def ours(self, tmux_id: str) -> str:
        """Return our id of the session, window or pane with tmux's id `$N`, `@N` or `%N`."""
        offset = {"$": self.sessions, "@": self.windows, "%": self.panes}[tmux_id[0]]
        return f"{tmux_id[0]}{int(tmux_id[1:]) + offset}"

    def behind(self, session: str, window: str, pane: str) -> "Offsets":
        """Return offsets for the next server that put its ids after these ids of ours.

        They are at least the present offsets.
        """
        return Offsets(
            max(self.sessions, int(session[1:]) + 1),
            max(self.windows, int(window[1:]) + 1),
            max(self.panes, int(pane[1:]) + 1),
        )


@dataclass(frozen=True, slots=True)
class PaneRow:
    """A pane of a tmux server with its window and session.

    The attributes are tmux's variables of the same names, as tmux prints them: tmux(1), "FORMATS".
    But `session_id`, `window_id` and `pane_id` are our ids; tmux's own, for its commands, are
    `tmux_session`, `tmux_window` and `tmux_pane`.
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
    history_limit: str
    pane_pid: str
    pane_tty: str
    tmux_session: str = ""
    tmux_window: str = ""
    tmux_pane: str = ""

    @property
    def may_have_dropped_lines(self) -> bool:
        """Whether tmux may have dropped lines: when a history is full, its oldest tenth goes."""
        limit = int(self.history_limit)
        return int(self.history_size) >= limit - max(1, limit // 10)


# The variables that list-panes prints for each pane, in the order of PaneRow's fields.
FIELDS = tuple(field.name for field in fields(PaneRow) if not field.name.startswith("tmux_"))


def panes_format(separator: str) -> str:
    """Return the format for `list-panes -a -F` whose output `parse` reads.

    The separator is random text, which no name of a session, window or program can contain.
    """
    variables = [f"#{{{field}}}" for field in FIELDS]
    return separator + separator.join(variables) + separator


def parse(output: str, separator: str, offsets: Offsets = Offsets()) -> list[PaneRow]:
    """Return the panes that tmux printed with `panes_format(separator)`, in tmux's order.

    They have our ids, and program names without control characters. A window that is linked to two
    sessions appears once in each.
    """
    values = output.split(separator)[1:]
    size = len(FIELDS) + 1  # after the last field comes the line feed
    rows = []
    for start in range(0, len(values) - size + 1, size):
        row = PaneRow(*values[start : start + len(FIELDS)])
        ours = replace(
            row,
            session_id=offsets.ours(row.session_id),
            window_id=offsets.ours(row.window_id),
            pane_id=offsets.ours(row.pane_id),
            pane_current_command=plain_name(row.pane_current_command),
            tmux_session=row.session_id,
            tmux_window=row.window_id,
            tmux_pane=row.pane_id,
        )
        rows.append(ours)
    return rows


def find_session(rows: Sequence[PaneRow], target: str) -> PaneRow:
    """Return a row of the session that a target means.

    A target of a window or a pane means its session, and the row is that of `find_pane`.
    """
    session_rows = _whole_session(rows, target)
    return session_rows[0] if session_rows else find_pane(rows, target)


def names_less_than_session(rows: Sequence[PaneRow], target: str) -> bool:
    """Return whether a target means a window or a pane, and not a session."""
    return not _whole_session(rows, target)


def find_panes(rows: Sequence[PaneRow], target: str) -> list[PaneRow]:
    """Return the rows of the window that a target means, or of the whole session that it means.

    A target of a pane means its window.
    """
    session_rows = _whole_session(rows, target)
    if session_rows:
        return session_rows
    pane = find_pane(rows, target)
    place = (pane.session_id, pane.window_index)
    return [row for row in rows if (row.session_id, row.window_index) == place]


def find_pane(rows: Sequence[PaneRow], target: str) -> PaneRow:
    """Return the row of the pane that a target means; of a window or session, its active pane."""
    if _PANE_ID.fullmatch(target):
        by_id = [row for row in rows if row.pane_id == target]
        if not by_id:
            raise _not_found(target, "there is no pane with this id")
        return by_id[0]
    # As a window first, since a window's name may end like a pane.
    try:
        candidates = _window_rows(rows, target, target)
    except TargetNotFoundError:
        match = _PANE.fullmatch(target)
        if match is None:
            raise
    else:
        return next((row for row in candidates if row.pane_active == "1"), candidates[0])
    window, pane = match.groups()
    window_rows = _window_rows(rows, window, target)
    meant = [row for row in window_rows if pane in (row.pane_index, row.pane_id)]
    if not meant:
        raise _not_found(target, f"its window has no pane '{pane}'")
    return meant[0]


def _whole_session(rows: Sequence[PaneRow], target: str) -> list[PaneRow]:
    """Return the rows of the session that a target means; none if it means a window or a pane."""
    if _PANE_ID.fullmatch(target) or _WINDOW_ID.fullmatch(target):
        return []
    session_rows, window = _split_session(rows, target, target)
    return [] if window else session_rows


def _window_rows(rows: Sequence[PaneRow], target: str, whole_target: str) -> list[PaneRow]:
    """Return the rows of a window; for a session without a window, of its active window.

    A window is looked up by its id, else its index, else its name; after `=` it is not an id.
    `target` names no pane; `whole_target` is for errors.
    """
    if _WINDOW_ID.fullmatch(target):
        by_id = [row for row in rows if row.window_id == target]
        if not by_id:
            raise _not_found(whole_target, "there is no window with this id")
        return by_id
    session_rows, window = _split_session(rows, target, whole_target)
    if not window:
        return [row for row in session_rows if row.window_active == "1"]
    name = window.removeprefix("=")
    if _WINDOW_ID.fullmatch(window):
        matching = [row for row in session_rows if row.window_id == window]
    else:
        by_index = [row for row in session_rows if row.window_index == name]
        matching = by_index or [row for row in session_rows if row.window_name == name]
    window_ids = list(dict.fromkeys(row.window_id for row in matching))
    if len(window_ids) > 1:
        raise AmbiguousTargetError(whole_target, len(window_ids), ", ".join(window_ids))
    if not matching:
        session = session_rows[0].session_name
        raise _not_found(whole_target, f"session '{session}' has no window '{name}'")
    return matching


def _split_session(
    rows: Sequence[PaneRow], target: str, whole_target: str
) -> tuple[list[PaneRow], str]:
    """Return the rows of the session that a target begins with, and the rest after the colon.

    Newer versions of tmux allow colons in names of sessions: the longest name that fits wins.
    """
    colons = [at for at in reversed(range(len(target))) if target[at] == ":"]
    for end in (len(target), *colons):
        session = target[:end]
        if _SESSION_ID.fullmatch(session):
            session_rows = [row for row in rows if row.session_id == session]
        else:
            name = session.removeprefix("=")
            session_rows = [row for row in rows if row.session_name == name]
        if session_rows:
            return session_rows, target[end + 1 :]
    name = target.partition(":")[0].removeprefix("=")
    raise _not_found(whole_target, f"there is no session '{name}'")


def _not_found(target: str, reason: str) -> TargetNotFoundError:
    relative = _RELATIVE.search(target)
    if target.startswith((":", ".")):
        reason = "it names no session, and none is current here"
    elif relative:
        reason = f"'{relative[1]}' depends on a tmux client; give a name or an id"
    return TargetNotFoundError(target, reason)
