"""Where a pane is: in tmux, and among the processes."""

from dataclasses import dataclass
from typing import NewType

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.tmux.client import ControlClient

PaneId = NewType("PaneId", str)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pane is.

    Attributes:
        client: The connection to its tmux server.
        target: tmux's id of the pane, such as %3.
        window: Our id of the window that the pane was made in, such as @3.
        leader: pane.sh when it was started, the session leader of the pane's terminal.
        tag: The value of `processes.TAG` in the environment of all processes started in the pane.
    """

    client: ControlClient
    target: str
    window: str
    leader: processes.Stat
    tag: str

    def living_leader(self) -> processes.Stat | None:
        """Return the present state of pane.sh, None once it has ended."""
        return processes.read_living(self.leader.pid, self.leader.starttime)
