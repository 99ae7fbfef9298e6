"""What a person types for our command. Of the standard library, only what callers load anyway."""

import os
import sys

_NAME = "tmux-debug"
_UNQUOTED = frozenset("+,-./:=@_")


def own_command(*, is_for_here: bool = False) -> str:
    """Return what a person types for `tmux-debug`: `own_program`, quoted for a shell."""
    word = own_program(is_for_here=is_for_here)
    if all(letter.isalnum() or letter in _UNQUOTED for letter in word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def own_program(*, is_for_here: bool = False) -> str:
    """Return the name of `tmux-debug` if PATH leads to it, else its path.

    The path is absolute; with `is_for_here`, it is as this program was called.
    """
    directories = [os.path.dirname(one) for one in (sys.argv[0], sys.executable)]
    paths = [os.path.join(directory, _NAME) for directory in directories if directory]
    path = next((path for path in paths if os.access(path, os.X_OK)), None)
    if path is None:
        return _NAME
    found = (os.path.join(directory, _NAME) for directory in os.get_exec_path())
    first = next((one for one in found if os.access(one, os.X_OK)), None)
    if first and os.path.realpath(first) == os.path.realpath(path):
        return _NAME
    return path if is_for_here else os.path.abspath(path)
