"""The command `tmux-debug-mcp`: arguments and environment in, exit statuses out.

The only module that reads the environment.
"""

import argparse
import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from . import __version__
from .errors import StartError
from .options import OPTIONS, Option, Values, path_of, settings_of
from .tmux.control_mode import version

_OLDEST_TMUX = (3, 3)


def main() -> None:
    """Run the command and exit."""
    try:
        _check_standard_streams()
        sys.exit(run(sys.argv[1:], os.environ))
    except StartError as error:
        print(f"tmux-debug-mcp: {error}", file=sys.stderr)
        sys.exit(1)


def run(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the command with these arguments and this environment.

    Returns:
        The exit status, for a command that ends by itself.

    Raises:
        StartError: It can't run here.
    """
    arguments = _parser().parse_args(argv)
    values = {option.flag: _value(arguments, option, environ) for option in OPTIONS}
    if sys.platform != "linux":
        raise StartError(f"This runs on Linux, not on {sys.platform}.")
    tmux = _find(values["tmux"])
    version_query = _ask_version(tmux)
    if arguments.command == "demo":
        _check_version(tmux, version_query)
        from .demo.debugging import run_demo  # noqa: PLC0415  it imports an MCP client

        return run_demo(tmux)
    _serve(values, environ, tmux, version_query)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tmux-debug-mcp",
        description="An MCP server on standard input and output that gives a debugging agent "
        "terminals in tmux.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"tmux-debug-mcp {__version__}")
    for option in OPTIONS:
        default = f"; default {option.default}" if option.default else ""
        text = f"{option.help} ({option.variable}{default})".replace("%", "%%")
        flag = f"--{option.flag}"
        if option.value:
            parser.add_argument(flag, metavar=option.value, help=text)
        else:
            parser.add_argument(flag, action="store_const", const="1", help=text)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands (default: serve)"
    )
    commands.add_parser(
        "demo", help="watch a client debug a small broken web service", allow_abbrev=False
    )
    return parser


def _value(arguments: argparse.Namespace, option: Option, environ: Mapping[str, str]) -> str:
    given: str | None = getattr(arguments, option.flag.replace("-", "_"))
    if given is not None:
        return given
    return environ.get(option.variable) or option.default


def _serve(
    values: Values, environ: Mapping[str, str], tmux: str, version_query: subprocess.Popen[bytes]
) -> None:
    # These imports are most of the start-up time. Meanwhile tmux tells its version.
    import anyio  # noqa: PLC0415

    from .audit import AuditLog  # noqa: PLC0415
    from .logs.archive import Archive  # noqa: PLC0415
    from .server import serve  # noqa: PLC0415
    from .tools.toolset import choose  # noqa: PLC0415

    _check_version(tmux, version_query)
    toolsets = choose(values["toolsets"])
    if values["socket"] and not any(toolset.uses_socket for toolset in toolsets):
        raise StartError(
            "--socket is for the toolsets tmux and tabs. Choose one with --toolsets, or leave "
            "it out."
        )
    settings = settings_of(values, environ, tmux)
    logs = path_of(values["log-dir"])
    if logs is None and any(toolset.keeps_logs for toolset in toolsets):
        logs = settings.state_dir / "logs"
    records, captures = path_of(values["audit"]), path_of(values["audit-full"])
    audit = AuditLog(records, captures) if records or captures else None
    archive = Archive(logs) if logs else None
    gc.freeze()  # what was imported stays; looking through it for garbage takes longer than a call
    anyio.run(serve, toolsets, settings, audit, archive)


def _check_standard_streams() -> None:
    """Refuse closed standard streams, and open them: our next files must not get their numbers."""
    opened = []
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            opened.append(os.open(os.devnull, os.O_RDWR))
    if 0 in opened or 1 in opened:
        raise StartError(
            "Standard input or output is closed, and MCP needs both. Have an MCP client start it."
        )


def _find(tmux: str) -> str:
    """Return the absolute path of a program, or its name if it is not there."""
    found = shutil.which(tmux)
    return os.path.abspath(found) if found else tmux


def _ask_version(tmux: str) -> subprocess.Popen[bytes]:
    """Start `tmux -V`.

    Raises:
        StartError: It can't be started.
    """
    try:
        return subprocess.Popen(
            [tmux, "-V"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise StartError(
            f"tmux is needed and '{tmux}' can't be started ({error.strerror}). "
            "Install tmux 3.3 or newer, or name it with --tmux."
        ) from error


def _check_version(tmux: str, version_query: subprocess.Popen[bytes]) -> None:
    """Wait for `tmux -V`, and check what it prints. A version without a number is a new one.

    Raises:
        StartError: tmux is too old, or does not run here.
    """
    answer, complaint = (
        data.decode(errors="replace").strip() for data in version_query.communicate()
    )
    number = version(answer)
    is_new = number >= _OLDEST_TMUX if number else answer.startswith("tmux")
    if is_new:
        return
    if "UTF-8" in complaint:
        raise StartError(
            f"'{tmux} -V' says: {complaint}. tmux needs a UTF-8 locale. Install C.UTF-8 or "
            "en_US.UTF-8, or set LC_CTYPE to one that there is (locale -a)."
        )
    raise StartError(
        f"tmux 3.3 or newer is needed and '{tmux}' is {answer or complaint or 'none'}. "
        "Install a newer one, or name it with --tmux."
    )
