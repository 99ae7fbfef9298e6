"""The server's configuration, as the command line and the environment give it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tmux_debug_mcp.linux import limits
from tmux_debug_mcp.vt.sizes import SESSION_COLUMNS, SESSION_ROWS


@dataclass(frozen=True, slots=True)
class Settings:
    """Configuration: plain values, and nothing that has to be closed.

    Attributes:
        env: The environment that panes inherit.
        cwd: The directory that panes start in, unless a call gives another.
        tmux: The tmux program: an absolute path, or a name to look up in PATH.
        is_subreaper: This process adopts orphans and serves one engine only, so it must end
            what a killed supervisor leaves behind.
        state_dir: Where files that outlive the server go, such as recordings.
        runtime_dir: The user's directory for sockets, $XDG_RUNTIME_DIR; "" when there is none.
        socket_dir: The directory with the server's own socket; "" when there is none.
        open_files: The soft limit of open files for programs in panes, as `ulimit -n` prints it.
        size: Columns and rows of a session of the toolset `terminal`.
        socket: The socket of the user's own tmux server, for the toolsets `tmux` and `tabs`;
            "" to work on ours.
        allows_kill: Calls may kill on the user's own tmux server.
    """

    env: Mapping[str, str]
    cwd: Path
    tmux: str = "tmux"
    is_subreaper: bool = False
    state_dir: Path = Path("tmux-debug-mcp")
    runtime_dir: str = ""
    socket_dir: str = ""
    open_files: str = field(default_factory=limits.open_files_limit)
    size: tuple[int, int] = (SESSION_COLUMNS, SESSION_ROWS)
    socket: str = ""
    allows_kill: bool = False
