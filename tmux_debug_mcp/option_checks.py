"""What the server's options mean together: the settings and the toolsets that they ask for."""

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import StartError
from .options import BY_FLAG, Values
from .settings import Settings, path_of, seconds_of, settings_of
from .tools.toolset import Toolset, choose


def checked(values: Values, environ: Mapping[str, str]) -> tuple[Settings, Sequence[Toolset[Any]]]:
    """Return the settings and the toolsets that options ask for.

    Raises:
        StartError: A server can't start with one of the values, or with all of them together.
    """
    settings, toolsets = _read(values, environ)
    if settings.allows_kill and not settings.socket:
        raise StartError(
            "--allow-kill needs --socket. On the private tmux server, everything may be killed. "
            "Omit --allow-kill."
        )
    if settings.socket and not any(toolset.uses_socket for toolset in toolsets):
        raise StartError(
            "--socket needs the toolset tmux or tabs. Choose one with --toolsets, or omit --socket."
        )
    for flag in ("env", "shell"):
        if values[flag] and settings.socket:
            raise StartError(
                f"--{flag} ({BY_FLAG[flag].variable}) can't be used with --socket: programs get "
                "their environment and their shell from the user's own tmux server. Omit one of "
                "the two."
            )
    is_usual_size = values["size"] == BY_FLAG["size"].default
    if not is_usual_size and not any(toolset.uses_size for toolset in toolsets):
        raise StartError(
            "--size (TMUX_DEBUG_SIZE) needs the toolset terminal. Choose it with --toolsets, or "
            "omit --size."
        )
    return settings, toolsets


def _read(values: Values, environ: Mapping[str, str]) -> tuple[Settings, Sequence[Toolset[Any]]]:
    """Return the settings and the toolsets, given values that may not fit together."""
    toolsets = choose(values["toolsets"])
    if values["keep"]:
        seconds_of(values["keep"])
    for flag in ("audit", "audit-full", "log-dir"):
        path_of(values[flag])
    return settings_of(values, environ), toolsets
