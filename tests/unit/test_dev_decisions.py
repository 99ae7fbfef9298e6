"""What `tmux-debug dev` does about the newest pane of its name: a table of situations."""

import pytest

from tmux_debug_mcp.command.dev import CREATE, RESTART, SHOW, decide
from tmux_debug_mcp.sockets.servers import VerbError

HERE, ELSEWHERE = "1:11", "1:12"

NOT_RUNNING = "'dev' is not running for this directory. Give its command: "
ANOTHER_DIRECTORY = "'dev' is running for another directory: /here (deleted). Give another --name."
ANOTHER_COMMAND = "'dev' is already running another command: npm start. Give --restart to end it"

# The pane's state and directory, the command that is given, whether with `--restart`; and the
# outcome, which is what is done or how the error begins.
TABLE: list[tuple[str, str, str, bool, str]] = [
    ("none", "", "", False, NOT_RUNNING),
    ("none", "", "", True, NOT_RUNNING),
    ("none", "", "npm start", False, CREATE),
    ("none", "", "npm start", True, CREATE),
    ("running", HERE, "", False, SHOW),
    ("running", HERE, "npm start", False, SHOW),
    ("running", HERE, "npm test", False, ANOTHER_COMMAND),
    ("running", HERE, "", True, RESTART),
    ("running", HERE, "npm start", True, RESTART),
    ("running", HERE, "npm test", True, RESTART),
    # Also where its path leads here again, as after a worktree was made anew.
    ("running", ELSEWHERE, "", False, ANOTHER_DIRECTORY),
    ("running", ELSEWHERE, "npm start", False, ANOTHER_DIRECTORY),
    ("running", ELSEWHERE, "npm start", True, ANOTHER_DIRECTORY),
    ("exited", HERE, "", False, RESTART),
    ("exited", HERE, "", True, RESTART),
    ("exited", HERE, "npm start", False, CREATE),
    ("exited", HERE, "npm test", True, CREATE),
    ("exited", ELSEWHERE, "", False, NOT_RUNNING),
    ("exited", ELSEWHERE, "", True, NOT_RUNNING),
    ("exited", ELSEWHERE, "npm start", False, CREATE),
]


@pytest.mark.parametrize(("status", "inode", "command", "restarts", "outcome"), TABLE)
def test_dev_does(status: str, inode: str, command: str, restarts: bool, outcome: str) -> None:  # noqa: FBT001
    pane: dict[str, object] | None = {
        "status": status,
        "inode": inode,
        "directory": "/here (deleted)",
        "command": "npm start",
        "line": "npm start",
    }
    try:
        done = decide(pane if inode else None, HERE, "dev", command, restarts=restarts)
    except VerbError as error:
        done = str(error)

    assert done.startswith(outcome)
