"""What in the environment is meant for us or for who started us, and what for the project.

PYTHONPATH is for the project's programs: it reaches panes, and does not decide what we import.
Variables that a client's or our own packaging has set for its programs do not reach panes. Of the
standard library, this imports only what callers load anyway.
"""

import os
import sys
from collections.abc import Mapping

# An Electron app that starts another program as Node.js. Source: Electron's documentation.
_OF_ELECTRON = ("ELECTRON_RUN_AS_NODE",)
# Source: AppImage's documentation, and its runtime.
_OF_APPIMAGE = ("APPDIR", "APPIMAGE", "ARGV0", "OWD")
# What VS Code and its descendants set for git, which then asks in the editor instead of the pane.
_OF_EDITORS = "VSCODE_GIT_"
_ASKPASS = ("GIT_ASKPASS", "SSH_ASKPASS")
_EDITORS = ("/askpass.sh", "/askpass-empty.sh", "/ssh-askpass.sh", "/ssh-askpass-empty.sh")
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def ignore_python_path(environ: Mapping[str, str]) -> None:
    """Import nothing more from PYTHONPATH, where a project may have its own `mcp` or `anyio`.

    It stays in the environment. If this package was found by it, others may be, so it counts.
    """
    path = environ.get("PYTHONPATH", "")
    if not path:
        return
    try:
        entries = [os.path.abspath(entry) for entry in path.split(os.pathsep)]
    except FileNotFoundError:  # the current directory is gone, and with it what is relative to it
        entries = [entry for entry in path.split(os.pathsep) if os.path.isabs(entry)]
    if _ROOT not in entries:
        own = f"{sys.prefix}/"
        sys.path[:] = [one for one in sys.path if one not in entries or one.startswith(own)]


def of_project(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without variables, and parts of them, that packaging has set."""
    dropped = {*_OF_ELECTRON}
    if any(name.startswith(_OF_EDITORS) for name in environ):
        dropped.update(name for name in environ if name.startswith(_OF_EDITORS))
        dropped.update(name for name in _ASKPASS if environ.get(name, "").endswith(_EDITORS))
        if "SSH_ASKPASS" in dropped:
            dropped.add("SSH_ASKPASS_REQUIRE")
    if "APPIMAGE" in environ:
        dropped.update(_OF_APPIMAGE)
    project = {name: value for name, value in environ.items() if name not in dropped}
    if "APPIMAGE" in environ and os.path.isabs(environ.get("APPDIR", "")):
        project = _without_paths_in(environ["APPDIR"], project)
    # `uvx` puts the programs of the environment that it makes for us first on PATH, our interpreter
    # among them. An environment that is active, as with `uv run`, is the project's.
    first, _, others = project.get("PATH", "").partition(":")
    is_ours = sys.prefix != sys.base_prefix and project.get("VIRTUAL_ENV") != sys.prefix
    if "UV" in project and is_ours and first == f"{sys.prefix}/bin":
        project["PATH"] = others
    return project


def _without_paths_in(directory: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the parts of values, between colons, that are paths in there.

    A variable of which nothing is left is gone.
    """
    inside = f"{directory.rstrip('/')}/"
    left = {}
    for name, value in environ.items():
        parts = [part for part in value.split(":") if not f"{part}/".startswith(inside)]
        if parts:
            left[name] = ":".join(parts)
    return left
