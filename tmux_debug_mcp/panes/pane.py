"""A pane as toolsets see it: a name, a keyboard, a shell, and what was shown of its screen last."""

from collections.abc import Sequence
from dataclasses import dataclass

from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.subscriptions import LogEvents

from .activity import Snapshot
from .keyboard import Keyboard
from .place import PaneId, Place
from .shell import PaneShell
from .tmux_pane import TmuxPane


@dataclass(frozen=True, slots=True)
class Identity:
    """What a pane is called.

    Attributes:
        id: Our id, `debug-N`.
        name: The name that it was given, or else the id.
        command: The command that it was made for.
        is_evictable: It may be removed once its program has ended, to make room.
    """

    id: PaneId
    name: str
    command: str
    is_evictable: bool = False


@dataclass(frozen=True, slots=True)
class ShownScreen:
    """The screen that a result showed last.

    Attributes:
        cursor: The cursor that the result gave.
        rows: The rows of the screen.
        group: The process group that had drawn it.
    """

    cursor: int
    rows: Sequence[str]
    group: int


class Pane(TmuxPane):
    """A pane with what calls do in it.

    Args:
        identity: What it is called.
        place: Where it is in tmux.
        log: Its log.
        events: Wakes the subscribers of logs.

    Attributes:
        keyboard: What is typed goes through this.
        shell: The shell in it, which is given commands.
        shown: The screen that a result showed last, if one did.
    """

    def __init__(self, identity: Identity, place: Place, log: Log, events: LogEvents) -> None:
        super().__init__(identity.id, place, log, events)
        self.name = identity.name
        self.command = identity.command
        self.is_evictable = identity.is_evictable
        self.keyboard = Keyboard(self)
        self.shell = PaneShell(self, self.keyboard)
        self.shown: ShownScreen | None = None

    @property
    def window(self) -> str:
        """Our id of the window that it was made in."""
        return self.place.window

    def begin_typing(self) -> Snapshot:
        """Take the snapshot that later ones are compared with: has what was typed been read?"""
        before = self.terminal.look()
        self.terminal.typed(before)
        return before

    def show(self, cursor: int, rows: Sequence[str], group: int) -> None:
        """Remember a screen that a result shows."""
        self.shown = ShownScreen(cursor, rows, group)

    def take_notices(self) -> list[str]:
        """Return what the next result has to say besides its own subject; each is said once."""
        notices = []
        result = self.shell.take_run_result()
        if result:
            notices.append(result)
        if self.has_gaps:
            notices.append("some output was lost: there was no room for it")
        return notices
