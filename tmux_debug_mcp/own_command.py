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
    found = (os.path.join(directory, _NAME) for directory in os.get_exec_path())
    on_path = next((one for one in found if os.access(one, os.X_OK)), None)
    started_as = sys.argv[0]
    # Python may have been given the module or code to run.
    beside = started_as if os.path.basename(started_as).startswith(_NAME) else sys.executable
    path = os.path.join(os.path.dirname(beside), _NAME)
    if "/" not in path or not os.access(path, os.X_OK):
        return _NAME
    if on_path and (beside != started_as or os.path.realpath(on_path) == os.path.realpath(path)):
        return _NAME
    return path if is_for_here else os.path.abspath(path)
