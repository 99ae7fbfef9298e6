"""The server's options: one table of flags and variables, and what becomes of their values.

A flag wins over its variable; an empty variable counts as not set.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import StartError
from .settings import Settings
from .vt.sizes import MAX_COLUMNS, MAX_ROWS, MIN_SIZE, SESSION_COLUMNS, SESSION_ROWS

if TYPE_CHECKING:
    from .tools.toolset import Toolset

# The size of the terminal that the server was started in is not that of a pane.
_NEVER_INHERITED = ("COLUMNS", "LINES")
LOCALE_VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG")
_OFF = ("", "0", "false", "no", "off")
_ON = ("1", "true", "yes", "on")
_SESSION_SIZE = f"{SESSION_COLUMNS}x{SESSION_ROWS}"


@dataclass(frozen=True, slots=True)
class Option:
    """An option: `--flag VALUE`, or the variable TMUX_DEBUG_FLAG.

    Attributes:
        flag: The flag, without its dashes.
        value: What the help calls its value; "" for a switch, which has none.
        default: Its default, "" for none.
        help: What it does.
    """

    flag: str
    value: str
    default: str
    help: str

    @property
    def variable(self) -> str:
        """The environment variable."""
        return "TMUX_DEBUG_" + self.flag.upper().replace("-", "_")


OPTIONS = (
    Option(
        "allow-kill",
        "",
        "",
        "with --socket: let tmux_kill, close_tab and stop_process end windows there",
    ),
    Option("audit", "FILE", "", "append a record of every call to this file, in JSON Lines"),
    Option("audit-full", "DIR", "", "keep what calls return of panes in files in this directory"),
    Option("cwd", "DIR", "", "the directory where panes start, instead of the server's own"),
    Option(
        "drop-env",
        "PATTERNS",
        "CLAUDE_CODE_*,CLAUDECODE,TMUX*",
        "environment variables that panes do not inherit, separated by commas",
    ),
    Option(
        "env",
        "VARIABLES",
        "",
        "more variables for panes: NAME=VALUE, several separated and quoted as for a shell",
    ),
    Option(
        "keep",
        "TIME",
        "",
        "serve through a server that goes on without its clients, until nobody has used it for so "
        "long: 90s, 60m, 2h or 1d",
    ),
    Option(
        "log-dir",
        "DIR",
        "",
        "keep the logs of panes in this directory, to be read after the end as RUN/ID",
    ),
    Option("shell", "PROGRAM", "", "the shell of panes, instead of $SHELL"),
    Option("size", "COLUMNSxROWS", _SESSION_SIZE, "the size of sessions in toolset terminal"),
    Option(
        "socket",
        "SOCKET",
        "",
        "have toolsets tmux and tabs work on the user's own tmux server: default, or the "
        "socket's path",
    ),
    Option("tmux", "PROGRAM", "tmux", "the tmux to use, version 3.3 or newer"),
    Option(
        "toolsets", "NAMES", "debug", "the tools to offer: names of toolsets, separated by commas"
    ),
)

Values = Mapping[str, str]


def value_of(flag: str, environ: Mapping[str, str]) -> str:
    """Return what the environment says of an option, else its default, "" for none."""
    [option] = [option for option in OPTIONS if option.flag == flag]
    return environ.get(option.variable) or option.default


def settings_of(values: Values, environ: Mapping[str, str], tmux: str) -> Settings:
    """Return the configuration that the options ask for.

    Args:
        values: The value of each option, by its flag; "" where it has none.
        environ: The environment.
        tmux: The tmux program, an absolute path.

    Raises:
        StartError: A value can't be used.
    """
    allows_kill = _is_on(values["allow-kill"])
    if allows_kill and not values["socket"]:
        raise StartError(
            "--allow-kill is for --socket: on the private tmux server all may be killed. Leave "
            "it out."
        )
    return Settings(
        env=_pane_environment(values, environ),
        cwd=_working_directory(values["cwd"]),
        tmux=tmux,
        is_subreaper=True,
        state_dir=state_directory(environ),
        runtime_dir=environ.get("XDG_RUNTIME_DIR", ""),
        socket=_socket(values["socket"], environ),
        allows_kill=allows_kill,
        size=_size(values["size"]),
    )


def check_uses(values: Values, toolsets: "Sequence[Toolset[Any]]") -> None:
    """Check that a toolset uses each option that is only for some of them.

    Raises:
        StartError: None does.
    """
    if values["socket"] and not any(toolset.uses_socket for toolset in toolsets):
        raise StartError(
            "--socket is for the toolsets tmux and tabs. Choose one with --toolsets, or leave "
            "it out."
        )
    if values["size"] != _SESSION_SIZE and not any(toolset.uses_size for toolset in toolsets):
        raise StartError(
            "--size (TMUX_DEBUG_SIZE) is for the toolset terminal. Choose it with --toolsets, or "
            "leave it out."
        )


def path_of(value: str) -> Path | None:
    """Return the absolute path that an option names, None for "".

    `~` is expanded: clients start servers without a shell that would do it.

    Raises:
        StartError: It begins with the home of a user that is not known.
    """
    return _absolute(value) if value else None


def _absolute(value: str) -> Path:
    try:
        return Path(value).expanduser().absolute()
    except RuntimeError as error:
        raise StartError(
            f"'{value}' begins with the home of a user that is not known here. Give an absolute "
            "path."
        ) from error


def pane_environment(
    environ: Mapping[str, str],
    dropped: Iterable[str],
    added: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the environment that panes inherit.

    LC_CTYPE is set where no locale is: clients start servers without one, and then programs print
    escapes instead of letters.

    Args:
        environ: The server's environment.
        dropped: Names and patterns of variables to leave out.
        added: Variables to add.
    """
    patterns = [*_NEVER_INHERITED, *(pattern.strip() for pattern in dropped)]
    env = {name: value for name, value in environ.items() if not _matches(name, patterns)}
    env |= added or {}
    if not any(env.get(name) for name in LOCALE_VARIABLES):
        env["LC_CTYPE"] = "C.UTF-8"
    return env


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _pane_environment(values: Values, environ: Mapping[str, str]) -> dict[str, str]:
    added = _variables(values["env"])
    env = pane_environment(environ, values["drop-env"].split(","), added)
    if values["shell"]:
        env["SHELL"] = _shell(values["shell"], env.get("PATH"))
    return env


def _variables(text: str) -> dict[str, str]:
    """Return the variables of `--env`."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise StartError(
            f"--env (TMUX_DEBUG_ENV) can't be read ({error}). Give NAME=VALUE, quoted as for a "
            "shell."
        ) from error
    variables = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not (name and separator):
            raise StartError(f"--env (TMUX_DEBUG_ENV) has '{name}', which is no NAME=VALUE.")
        variables[name] = value
    return variables


def _shell(given: str, path: str | None) -> str:
    shell = shutil.which(os.path.expanduser(given), path=path)
    if shell is None:
        raise StartError(
            f"--shell (TMUX_DEBUG_SHELL) is '{given}', which can't be run. Give the path of a "
            "shell."
        )
    return os.path.abspath(shell)


def _socket(given: str, environ: Mapping[str, str]) -> str:
    """Return the path of a tmux server's socket. Source: tmux(1), -L and -S."""
    if not given:
        return ""
    if "/" in given:
        return os.path.abspath(os.path.expanduser(given))
    temporary = environ.get("TMUX_TMPDIR") or "/tmp"  # noqa: S108  as tmux itself has it
    by_name = os.path.join(temporary, f"tmux-{os.getuid()}", given)
    if given != "default":
        raise StartError(
            f"--socket '{given}' may mean a file here or a name for tmux -L. Give a path: "
            f"./{given} or {by_name}."
        )
    return by_name


def _is_on(word: str) -> bool:
    if word.lower() not in (*_ON, *_OFF):
        raise StartError(f"TMUX_DEBUG_ALLOW_KILL is '{word}'. Give 1 or 0.")
    return word.lower() in _ON


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", text)
    if found:
        columns, rows = int(found[1]), int(found[2])
        if MIN_SIZE <= columns <= MAX_COLUMNS and MIN_SIZE <= rows <= MAX_ROWS:
            return columns, rows
    raise StartError(
        f"--size (TMUX_DEBUG_SIZE) is '{text}'. Give columns and rows, such as {_SESSION_SIZE}, of "
        f"at most {MAX_COLUMNS}x{MAX_ROWS}."
    )


def state_directory(environ: Mapping[str, str]) -> Path:
    """Return our directory for files that outlive us. Source: XDG Base Directory Specification."""
    base = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/state")
    return Path(base) / "tmux-debug-mcp"


def _working_directory(given: str) -> Path:
    if given:
        path = _absolute(given)
        if path.is_dir() and os.access(path, os.X_OK):
            return path
        raise StartError(
            f"--cwd (TMUX_DEBUG_CWD) is '{given}', which is no directory that can be entered. "
            "Give one that exists."
        )
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise StartError("The current directory is gone. Start from one that exists.") from None
