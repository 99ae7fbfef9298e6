"""The command: arguments and environment to typed settings, and exit codes.

The only module that reads the environment. One table of options; each has a flag and a variable, and the flag
wins. A variable that is empty counts as not set.
"""

import argparse
import gc
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tmux_debug_mcp import __version__
from tmux_debug_mcp.tmux.control_mode import version

from .errors import StartError

_OLDEST_TMUX = (3, 3)
_OF_ANOTHER_TERMINAL = ("COLUMNS", "LINES")
_OFF = ("", "0", "false", "no", "off")
_ON = ("1", "true", "yes", "on")
_LOCALES = ("LC_ALL", "LC_CTYPE", "LANG")


@dataclass(frozen=True, slots=True)
class Option:
    """An option of the server: `--flag VALUE`, or the variable TMUX_DEBUG_FLAG; without a value, a switch."""

    flag: str
    value: str
    default: str
    help: str

    @property
    def variable(self) -> str:
        """The environment variable."""
        return "TMUX_DEBUG_" + self.flag.upper().replace("-", "_")


OPTIONS = (
    Option("allow-kill", "", "", "with --socket: let tmux_kill end things there"),
    Option("audit", "FILE", "", "append a record of every call to this file, in JSON Lines"),
    Option("audit-full", "DIR", "", "keep what calls return of panes in files in this directory"),
    Option("cwd", "DIR", "", "the directory where panes start, instead of the server's own"),
    Option(
        "drop-env",
        "PATTERNS",
        "CLAUDE_CODE_*,CLAUDECODE,TMUX*",
        "environment variables that panes do not inherit, separated by commas",
    ),
    Option("env", "VARIABLES", "", "more variables for panes: NAME=VALUE, several separated and quoted as for a shell"),
    Option("log-dir", "DIR", "", "keep the logs of panes in this directory, to be read after the end as RUN/ID"),
    Option("shell", "PROGRAM", "", "the shell of panes, instead of $SHELL"),
    Option("size", "COLUMNSxROWS", "120x40", "the size of sessions in toolset terminal"),
    Option(
        "socket",
        "SOCKET",
        "",
        "have toolsets tmux and tabs work on the user's own tmux server: default, or the socket's path",
    ),
    Option("tmux", "PROGRAM", "tmux", "the tmux to use, version 3.3 or newer"),
    Option("toolsets", "NAMES", "debug", "the tools to offer: names of toolsets, separated by commas"),
)


def main() -> None:
    """Run the command and exit."""
    try:
        _check_standard_streams()
        sys.exit(run(sys.argv[1:], os.environ))
    except StartError as error:
        print(f"tmux-debug-mcp: {error}", file=sys.stderr)
        sys.exit(1)


def run(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the command with these arguments and environment.

    Returns:
        The exit status, when the command is one that ends by itself.

    Raises:
        StartError: It can't run here.
    """
    arguments = _parser().parse_args(argv)
    values = {option.flag: _value(arguments, option, environ) for option in OPTIONS}
    if sys.platform != "linux":
        raise StartError(f"This runs on Linux, not on {sys.platform}.")
    tmux = _find(values["tmux"])
    asked = _ask_version(tmux)
    if arguments.command == "demo":
        _check_version(tmux, *asked.communicate())
        from tmux_debug_mcp.demo.debugging import run_demo  # noqa: PLC0415

        return run_demo(tmux)
    _serve(values, environ, tmux, asked)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tmux-debug-mcp",
        description="An MCP server on standard input and output that gives a debugging agent terminals in tmux.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"tmux-debug-mcp {__version__}")
    for option in OPTIONS:
        default = f"; default {option.default}" if option.default else ""
        text = f"{option.help} ({option.variable}{default})".replace("%", "%%")
        if option.value:
            parser.add_argument(f"--{option.flag}", metavar=option.value, help=text)
        else:
            parser.add_argument(f"--{option.flag}", action="store_const", const="1", help=text)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands (default: serve)")
    commands.add_parser("demo", help="watch a client debug a small broken web service", allow_abbrev=False)
    return parser


def _value(arguments: argparse.Namespace, option: Option, environ: Mapping[str, str]) -> str:
    given: str | None = getattr(arguments, option.flag.replace("-", "_"))
    return given if given is not None else environ.get(option.variable) or option.default


def _serve(values: Mapping[str, str], environ: Mapping[str, str], tmux: str, asked: subprocess.Popen[bytes]) -> None:
    # Most of our start is this import; tmux tells its version meanwhile.
    import anyio  # noqa: PLC0415

    from tmux_debug_mcp.logs.archive import Archive  # noqa: PLC0415
    from tmux_debug_mcp.tools.toolset import choose  # noqa: PLC0415

    from .audit import AuditLog  # noqa: PLC0415
    from .server import serve  # noqa: PLC0415
    from .settings import Settings  # noqa: PLC0415

    _check_version(tmux, *asked.communicate())
    toolsets = choose(values["toolsets"])
    if values["socket"] and not any(toolset.uses_socket for toolset in toolsets):
        raise StartError("--socket is for the toolsets tmux and tabs. Choose one with --toolsets, or leave it out.")
    allows_kill = _is_on(values["allow-kill"])
    if allows_kill and not values["socket"]:
        raise StartError("--allow-kill is for --socket: on the private tmux server all may be killed. Leave it out.")
    # Clients start servers without a shell, so nobody else expands a tilde.
    flags = ("audit", "audit-full", "log-dir")
    *paths, logs = [Path(values[flag]).expanduser().absolute() if values[flag] else None for flag in flags]
    state = _state_directory(environ)
    if logs is None and any(toolset.keeps_logs for toolset in toolsets):
        logs = state / "logs"
    audit = AuditLog(*paths) if any(paths) else None
    archive = Archive(logs) if logs else None
    settings = Settings(
        _pane_environment(values, environ),
        _working_directory(values["cwd"]),
        tmux,
        is_subreaper=True,
        state_dir=state,
        runtime_dir=environ.get("XDG_RUNTIME_DIR", ""),
        socket=_socket(values["socket"], environ),
        allows_kill=allows_kill,
        size=_size(values["size"]),
    )
    gc.freeze()  # what was imported stays: to look through that for garbage takes longer than a call
    anyio.run(serve, toolsets, settings, audit, archive)


def _socket(name: str, environ: Mapping[str, str]) -> str:
    """Return the path of a tmux server's socket."""
    if not name or "/" in name:
        return os.path.abspath(os.path.expanduser(name)) if name else ""
    by_name = os.path.join(environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}", name)  # noqa: S108  tmux's own
    if name != "default":
        raise StartError(
            f"--socket '{name}' may mean a file here or a name for tmux -L. Give a path: ./{name} or {by_name}."
        )
    return by_name


def _pane_environment(values: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return what panes inherit, as the options have it."""
    added = {}
    try:
        words = [word.partition("=") for word in shlex.split(values["env"])]
    except ValueError as error:
        raise StartError(
            f"--env (TMUX_DEBUG_ENV) can't be read ({error}). Give NAME=VALUE, quoted as for a shell."
        ) from error
    for name, separator, value in words:
        if not (name and separator):
            raise StartError(f"--env (TMUX_DEBUG_ENV) has '{name}', which is no NAME=VALUE.")
        added[name] = value
    env = pane_environment(environ, values["drop-env"].split(","), added)
    if values["shell"]:
        shell = shutil.which(os.path.expanduser(values["shell"]), path=env.get("PATH"))
        if shell is None:
            raise StartError(
                f"--shell (TMUX_DEBUG_SHELL) is '{values['shell']}', which can't be run. Give the path of a shell."
            )
        env["SHELL"] = os.path.abspath(shell)
    return env


def _is_on(word: str) -> bool:
    if word.lower() not in (*_ON, *_OFF):
        raise StartError(f"TMUX_DEBUG_ALLOW_KILL is '{word}'. Give 1 or 0.")
    return word.lower() in _ON


def _size(text: str) -> tuple[int, int]:
    from tmux_debug_mcp.vt.sizes import MAX_COLUMNS, MAX_ROWS  # noqa: PLC0415

    found = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", text)
    columns, rows = (int(found[1]), int(found[2])) if found else (0, 0)
    if not (2 <= columns <= MAX_COLUMNS and 2 <= rows <= MAX_ROWS):  # noqa: PLR2004
        raise StartError(
            f"--size (TMUX_DEBUG_SIZE) is '{text}'. Give columns and rows, such as 120x40, of at most "
            f"{MAX_COLUMNS}x{MAX_ROWS}."
        )
    return columns, rows


def _state_directory(environ: Mapping[str, str]) -> Path:
    """Return where a user's programs keep what is to outlive them, as freedesktop.org has it."""
    base = environ.get("XDG_STATE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path("~/.local/state").expanduser()) / "tmux-debug-mcp"


def pane_environment(
    environ: Mapping[str, str], dropped: Sequence[str], added: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return what panes inherit: all but the variables of these names or patterns, what is added, a UTF-8 locale.

    The size of the terminal that we were started in is not that of a pane.

    LC_CTYPE is set only where no locale is: clients start servers without one, and then programs print
    escapes instead of letters.
    """
    env = {
        name: value
        for name, value in environ.items()
        if not any(fnmatchcase(name, pattern.strip()) for pattern in (*_OF_ANOTHER_TERMINAL, *dropped))
    }
    env |= added or {}
    return env if any(env.get(name) for name in _LOCALES) else env | {"LC_CTYPE": "C.UTF-8"}


def _check_standard_streams() -> None:
    """Open what is closed of the standard streams: files that we open are not to take their place."""
    closed = []
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            closed.append(os.open(os.devnull, os.O_RDWR))
    if {0, 1} & set(closed):
        raise StartError("Standard input or output is closed, and MCP needs both. Have an MCP client start it.")


def _find(tmux: str) -> str:
    """Return the program's path, which is good in every directory; or what was given, when there is none."""
    found = shutil.which(tmux)
    return os.path.abspath(found) if found else tmux


def _working_directory(given: str) -> Path:
    if given:
        path = Path(given).expanduser().absolute()
        if not (path.is_dir() and os.access(path, os.X_OK)):
            raise StartError(
                f"--cwd (TMUX_DEBUG_CWD) is '{given}', which is no directory that can be entered. Give one that exists."
            )
        return path
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise StartError("The current directory is gone. Start from one that exists.") from None


def _ask_version(tmux: str) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen([tmux, "-V"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise StartError(
            f"tmux is needed and '{tmux}' can't be started ({error.strerror}). Install tmux 3.3 or newer, "
            "or name it with --tmux."
        ) from error


def _check_version(tmux: str, answer: bytes, complaint: bytes) -> None:
    said, complained = answer.decode(errors="replace").strip(), complaint.decode(errors="replace").strip()
    number = version(said)
    if number >= _OLDEST_TMUX if number else said.startswith("tmux"):
        return
    if "UTF-8" in complained:
        raise StartError(
            f"'{tmux} -V' says: {complained}. tmux needs a UTF-8 locale. Install C.UTF-8 or en_US.UTF-8, or set "
            "LC_CTYPE to one that there is (locale -a)."
        )
    raise StartError(
        f"tmux 3.3 or newer is needed and '{tmux}' is {said or complained or 'none'}. "
        "Install a newer one, or name it with --tmux."
    )
