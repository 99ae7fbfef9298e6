"""A pane as toolsets see it: a name, a keyboard, a shell, and the screen that was shown last."""

from collections.abc import Sequence
from dataclasses import dataclass

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.logs.growth import LogEvents
from tmux_debug_mcp.logs.log import Log

from .keyboard import Keyboard
from .looking.activity import Snapshot
from .pane_shell import PaneShell
from .place import PaneId, Place
from .tmux_pane import TmuxPane


@dataclass(frozen=True, slots=True)
class Identity:
    """How a pane is identified, and what it was made for.

    Attributes:
        id: Our id, `debug-N`.
        name: The name that the call gave, or else the id.
        command: The command that the pane was made for.
        is_evictable: The pane may be removed once its program has ended, to make room.
    """

    id: PaneId
    name: str
    command: str
    is_evictable: bool = False


@dataclass(frozen=True, slots=True)
class ShownScreen:
    """The screen that a result showed last.

    Attributes:
        cursor: The cursor in that result.
        rows: The rows of the screen.
        group: The foreground process group then, whose program drew the screen.
    """

    cursor: int
    rows: Sequence[str]
    group: int


class Pane(TmuxPane):
    """A pane of tmux, with a name and everything that calls use to work in it.

    Args:
        identity: Its id, name and command.
        place: Where it is in tmux.
        log: Its log.
        events: Wakes the subscribers of logs.
        clock: The engine's clock.

    Attributes:
        name: The name that the call gave, or else the id.
        command: The command that the pane was made for.
        is_evictable: The pane may be removed once its program has ended, to make room.
        keyboard: Types into the pane.
        shell: Gives commands to the shell in the pane.
        shown: The screen that a result showed last; None if none did.
    """

    def __init__(
        self, identity: Identity, place: Place, log: Log, events: LogEvents, clock: Clock
    ) -> None:
        super().__init__(identity.id, place, log, events, clock)
        self.name = identity.name
        self.command = identity.command
        self.is_evictable = identity.is_evictable
        self.keyboard = Keyboard(self)
        self.shell = PaneShell(self, self.keyboard)
        self.shown: ShownScreen | None = None

    @property
    def window(self) -> str:
        """Our id of the window that the pane was made in, `@N`."""
        return self.place.window

    def begin_typing(self) -> Snapshot:
        """Take a snapshot right before typing, and return it.

        Later snapshots are compared with it, to find out whether the program has read the keys.
        """
        before = self.terminal.look()
        self.terminal.typed(before)
        return before

    def show(self, cursor: int, rows: Sequence[str], group: int) -> None:
        """Remember a screen that a result is about to show."""
        self.shown = ShownScreen(cursor, rows, group)

    def take_notices(self) -> list[str]:
        """Return the notices to add to the next result of any call about this pane.

        The end of a run is told once; who has the keyboard, and lost output, in every result.
        """
        notices = []
        run_result = self.shell.take_run_result()
        if run_result:
            notices.append(run_result)
        if self.keyboard.holder:
            notices.append(f"{self.keyboard.holder} has the keyboard")
        if self.has_gaps:
            notices.append("some output was lost: there was no room for it")
        return notices
