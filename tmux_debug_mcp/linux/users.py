"""Users of this machine."""

import getpass
import os


def user_name() -> str:
    """Return the name of our user, or `uid N` where they have none, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the latter from Python 3.13 on
        return f"uid {os.getuid()}"
