"""The configuration of an engine, and what the values of the server's options mean for it.

A value that can't be used raises StartError.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from tmux_debug_mcp.errors import StartError
from tmux_debug_mcp.linux import own_process
from tmux_debug_mcp.linux.gone import gone_directory
from tmux_debug_mcp.linux.processes import TAG
from tmux_debug_mcp.own_environment import of_project
from tmux_debug_mcp.vt.sizes import MAX_COLUMNS, MAX_ROWS, SESSION_COLUMNS, SESSION_ROWS, size_of

# A pane's size is not that of the caller's terminal, its server is not the one that the caller's
# shell was told to call, and it is not the pane that the caller may be in.
_NEVER_INHERITED = ("COLUMNS", "LINES", "TMUX_DEBUG_SERVER", TAG)
LOCALE_VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG")
_OFF = ("", "0", "false", "no", "off")
_ON = ("1", "true", "yes", "on")
_SESSION_SIZE = f"{SESSION_COLUMNS}x{SESSION_ROWS}"
# Who may type where hidden input is awaited.
_ANYONE = "anyone"
_PERSON = "person"
_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_MAX_KEEP_S = 30 * 86_400


@dataclass(frozen=True, slots=True)
class Settings:
    """Configuration: plain values, and nothing that has to be closed.

    Attributes:
        env: The environment that panes inherit, unless a call comes from elsewhere.
        dropped: Names of variables that panes do not inherit, and fnmatch patterns.
        added: Variables that panes get in addition to those that they inherit.
        cwd: The directory that panes start in, unless a call gives another.
        tmux: The tmux program: an absolute path, or a name to look up in PATH.
        is_subreaper: This process adopts orphans and serves one engine only, so it must end
            what a killed supervisor leaves behind.
        state_dir: Where files that outlive the server go, such as recordings.
        runtime_dir: The user's directory for sockets, $XDG_RUNTIME_DIR; "" when there is none.
        socket_dir: The directory with the server's own socket; "" when there is none.
        programs_dir: A directory to put last on the PATH of panes; "" for none.
        open_files: The soft limit of open files for programs in panes, as `ulimit -n` prints it.
        size: Columns and rows of a session of the toolset `terminal`.
        socket: The socket of the user's own tmux server, for the toolsets `tmux` and `tabs`;
            "" to work on ours.
        allows_kill: Calls may kill on the user's own tmux server.
        only_people_type_secrets: Calls may not type where hidden input is awaited.
    """

    env: Mapping[str, str]
    cwd: Path
    tmux: str = "tmux"
    is_subreaper: bool = False
    state_dir: Path = Path("tmux-debug-mcp")
    runtime_dir: str = ""
    socket_dir: str = ""
    programs_dir: str = ""
    open_files: str = field(default_factory=own_process.open_files_limit)
    size: tuple[int, int] = (SESSION_COLUMNS, SESSION_ROWS)
    socket: str = ""
    allows_kill: bool = False
    only_people_type_secrets: bool = False
    dropped: Sequence[str] = ()
    added: Mapping[str, str] = field(default_factory=dict)

    def inherited(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return what panes inherit of a caller's environment."""
        return pane_environment(environ, self.dropped, self.added)


def settings_of(values: Mapping[str, str], environ: Mapping[str, str]) -> Settings:
    """Return the settings that options ask for."""
    env = pane_environment_of(values, environ)
    shell = {"SHELL": env["SHELL"]} if values["shell"] else {}
    return Settings(
        env=env,
        cwd=_working_directory(values["cwd"]),
        tmux=values["tmux"],
        is_subreaper=True,
        state_dir=state_directory(environ),
        runtime_dir=environ.get("XDG_RUNTIME_DIR", ""),
        socket=_socket(values["socket"], environ),
        allows_kill=_is_on(values["allow-kill"]),
        size=_size(values["size"]),
        only_people_type_secrets=_only_people(values["secrets"]),
        dropped=values["drop-env"].split(","),
        added=_variables(values["env"]) | shell,
    )


def state_directory(environ: Mapping[str, str]) -> Path:
    """Return our directory for files that outlive us. Source: XDG Base Directory Specification."""
    base = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/state")
    return Path(base) / "tmux-debug-mcp"


def path_of(value: str) -> Path | None:
    """Return the absolute path that an option names, None for "".

    `~` is expanded: clients start servers without a shell that would do it.
    """
    if not value:
        return None
    try:
        path = Path(value).expanduser()
        return path if path.is_absolute() else _current_directory() / path
    except RuntimeError as error:
        raise StartError(
            f"'{value}' begins with the home directory of an unknown user. Give an absolute path."
        ) from error


def pane_environment(
    environ: Mapping[str, str], dropped: Iterable[str], added: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment that panes inherit: the project's, as `of_project` says.

    LC_CTYPE is set if no locale is: clients start servers without one, and programs then print
    escapes instead of letters. `dropped` contains names of variables to leave out, and fnmatch
    patterns.
    """
    patterns = [*_NEVER_INHERITED, *(pattern.strip() for pattern in dropped)]
    env = {
        name: value
        for name, value in of_project(environ).items()
        if not any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    env |= added or {}
    if not any(env.get(name) for name in LOCALE_VARIABLES):
        env["LC_CTYPE"] = "C.UTF-8"
    return env


def pane_environment_of(values: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the pane environment that the options ask for."""
    added = _variables(values["env"])
    env = pane_environment(environ, values["drop-env"].split(","), added)
    given = values["shell"]
    if given:
        shell = shutil.which(os.path.expanduser(given), path=env.get("PATH"))
        if shell is None:
            raise StartError(
                f"--shell (TMUX_DEBUG_SHELL) is '{given}', which can't be run. Give the path of a "
                "shell."
            )
        env["SHELL"] = os.path.abspath(shell)
    return env


def _variables(text: str) -> dict[str, str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise StartError(
            f"--env (TMUX_DEBUG_ENV) can't be read ({error}). Give NAME=VALUE, quoted as in a "
            "shell."
        ) from error
    variables = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not (name and separator):
            raise StartError(f"--env (TMUX_DEBUG_ENV) has '{name}', which is not NAME=VALUE.")
        variables[name] = value
    return variables


def _socket(given: str, environ: Mapping[str, str]) -> str:
    """Return the path of a tmux server's socket. Source: tmux(1), -L and -S."""
    if not given:
        return ""
    if "/" in given:
        return os.path.abspath(os.path.expanduser(given))
    temporary = environ.get("TMUX_TMPDIR") or "/tmp"  # noqa: S108  as in tmux itself
    by_name = os.path.join(temporary, f"tmux-{os.getuid()}", given)
    if given != "default":
        raise StartError(
            f"--socket '{given}' may mean a file here or a name for tmux -L. Give a path: "
            f"./{given} or {by_name}."
        )
    return by_name


def _is_on(word: str) -> bool:
    if word.lower() not in (*_ON, *_OFF):
        raise StartError(f"TMUX_DEBUG_ALLOW_KILL is '{word}'. Set it to 1 or 0.")
    return word.lower() in _ON


def _only_people(who: str) -> bool:
    if who not in (_ANYONE, _PERSON):
        raise StartError(
            f"--secrets (TMUX_DEBUG_SECRETS) is '{who}'. Give {_PERSON}, or {_ANYONE}, which is "
            "the default."
        )
    return who == _PERSON


def _size(text: str) -> tuple[int, int]:
    size = size_of(text)
    if size:
        return size
    raise StartError(
        f"--size (TMUX_DEBUG_SIZE) is '{text}'. Give columns and rows, such as {_SESSION_SIZE}, of "
        f"at most {MAX_COLUMNS}x{MAX_ROWS}."
    )


def _working_directory(given: str) -> Path:
    path = path_of(given)
    if path:
        if path.is_dir() and os.access(path, os.X_OK):
            return path
        raise StartError(
            f"--cwd (TMUX_DEBUG_CWD) is '{given}', which is not a directory that can be entered. "
            "Give one that exists."
        )
    return _current_directory()


def _current_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise StartError(
            f"The current directory is gone: {gone_directory()}. Start from one that exists."
        ) from None


def duration_s(text: str) -> float | None:
    """Return the seconds of a time: `10`, `0.5`, `90s`, `60m`, `2h`, `1d`; None if it isn't one."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})([smhd]?)", text)
    return float(found[1]) * _UNITS_S[found[2]] if found else None


def seconds_of(keep: str) -> float:
    """Return the seconds of `--keep`, or raise StartError."""
    seconds = duration_s(keep)
    if seconds and seconds <= _MAX_KEEP_S:
        return seconds
    raise StartError(
        f"--keep (TMUX_DEBUG_KEEP) is '{keep}'. Give a time such as 90s, 60m, 2h or 1d, of at most "
        "30d."
    )
