"""Names of panes, windows and sessions, as calls may give them."""

import re

from tmux_debug_mcp.errors import ArgumentError

MAX_NAME_CHARACTERS = 64

# The ids that we give panes.
_ID = re.compile(r"debug-\d+")


def check_name(name: str, parameter: str = "name", ids: re.Pattern[str] = _ID) -> None:
    """Check the name of a pane, a window or a session.

    Args:
        name: The name.
        parameter: The parameter that has it, for the error.
        ids: What matches as a whole is an id, and can't be a name. Our ids of panes unless given.

    Raises:
        ArgumentError: It is blank or not printable, or looks like an id.
    """
    if not name.isprintable() or not name.strip():
        raise ArgumentError(
            f"Parameter '{parameter}' is {name!a}. It must be printable and not blank."
        )
    if ids.fullmatch(name):
        raise ArgumentError(
            f"Parameter '{parameter}' is '{name}', which looks like an id. Give another name."
        )
