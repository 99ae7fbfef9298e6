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
    path = installed_program()
    if not path:
        return _NAME
    if on_path and (not _is_started() or os.path.realpath(on_path) == os.path.realpath(path)):
        return _NAME
    return path if is_for_here else os.path.abspath(path)


def installed_program() -> str:
    """Return the path of the `tmux-debug` that is installed with this package, "" if none is."""
    path = os.path.join(os.path.dirname(sys.argv[0] if _is_started() else sys.executable), _NAME)
    return path if "/" in path and os.access(path, os.X_OK) else ""


def _is_started() -> bool:
    """Tell whether a program of ours was started; Python may have been given a module or code."""
    return os.path.basename(sys.argv[0]).startswith(_NAME)
