"""The command `tmux-debug-mcp`: arguments and environment in, exit statuses out."""

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from . import __version__
from .errors import StartError
from .options import OPTIONS, OptionError, Values, checked, parse, unknown
from .tmux.control_mode import version
from .verbs.registry import LOOKING, SECTIONS

if TYPE_CHECKING:
    from .server import Configuration

_OLDEST_TMUX = (3, 3)
_WRONG = 2


def main() -> None:
    """Run the command and exit."""
    try:
        _check_standard_streams()
        sys.exit(run(sys.argv[1:], os.environ))
    except StartError as error:
        print(f"tmux-debug-mcp: {error}", file=sys.stderr)
        sys.exit(1)
    except OptionError as error:
        print(f"usage: tmux-debug-mcp [OPTION ...]\ntmux-debug-mcp: {error}", file=sys.stderr)
        sys.exit(_WRONG)


def run(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the command with these arguments and this environment.

    Returns:
        The exit status, for a command that ends by itself.

    Raises:
        OptionError: The arguments can't be read.
        StartError: It can't run here.
    """
    values, others = parse(argv, environ)
    if "-h" in others or "--help" in others:
        sys.stdout.write(_help())
        return 0
    if "--version" in others:
        print(f"tmux-debug-mcp {__version__}")
        return 0
    wrong = [word for word in others if word != "demo"]
    if wrong:
        raise unknown(wrong[0])
    if others:
        return _demo(values["tmux"])
    configuration = configuration_of(values, environ)
    import anyio  # noqa: PLC0415

    from .server import serve  # noqa: PLC0415

    gc.freeze()  # what was imported stays; looking through it for garbage takes longer than a call
    anyio.run(serve, configuration)
    return 0


def configuration_of(values: Values, environ: Mapping[str, str]) -> "Configuration":
    """Return what a server with these options and this environment serves.

    Raises:
        StartError: An option has a value that can't be used, or tmux is too old.
    """
    _check_system()
    tmux = _find(values["tmux"])
    version_query = _ask_version(tmux)
    # These imports are most of the start-up time. Meanwhile tmux tells its version.
    from .audit import AuditLog  # noqa: PLC0415
    from .logs.archive import Archive  # noqa: PLC0415
    from .server import Configuration  # noqa: PLC0415
    from .settings import path_of  # noqa: PLC0415

    _check_version(tmux, version_query)
    settings, toolsets = checked({**values, "tmux": tmux}, environ)

    audit = None
    records, captures = path_of(values["audit"]), path_of(values["audit-full"])
    if records or captures:
        audit = AuditLog(records, captures)

    archive = None
    log_directory = path_of(values["log-dir"])
    if log_directory is None and any(toolset.keeps_logs for toolset in toolsets):
        log_directory = settings.state_dir / "logs"
    if log_directory:
        archive = Archive(log_directory)
        archive.prepare()

    return Configuration(toolsets, settings, audit, archive)


def _help() -> str:
    import argparse  # noqa: PLC0415  only the help needs it

    verbs = "|".join(verb.name for verb in SECTIONS[LOOKING])
    parser = argparse.ArgumentParser(
        prog="tmux-debug-mcp",
        usage=f"tmux-debug-mcp [OPTION ...]\n       tmux-debug-mcp {verbs} [ARGUMENT ...]",
        description="An MCP server on standard input and output that gives a debugging agent "
        "terminals in tmux.",
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    for option in OPTIONS:
        facts = option.variable
        if option.default:
            facts += f"; default {option.default}"
        text = f"{option.help} ({facts})".replace("%", "%%")  # argparse formats help with %
        if option.value:
            parser.add_argument(f"--{option.flag}", metavar=option.value, help=text)
        else:
            parser.add_argument(f"--{option.flag}", action="store_true", help=text)
    return parser.format_help()


def _check_system() -> None:
    if sys.platform != "linux":
        raise StartError(f"This runs on Linux, not on {sys.platform}.")


def _demo(tmux: str) -> int:
    """Run the demo, and return its exit status."""
    _check_system()
    tmux = _find(tmux)
    _check_version(tmux, _ask_version(tmux))
    from .demo.debugging import run_demo  # noqa: PLC0415  it imports an MCP client

    return run_demo(tmux)


def _check_standard_streams() -> None:
    """Check that standard input and output are open.

    Streams that are closed lead to /dev/null then, so that no file of ours gets their numbers.

    Raises:
        StartError: One of the two is closed.
    """
    closed = [fd for fd in (0, 1, 2) if not _is_open(fd)]
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free
    if 0 in closed or 1 in closed:
        raise StartError(
            "Standard input or output is closed, and MCP needs both. Have an MCP client start it."
        )


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _find(tmux: str) -> str:
    """Return the absolute path of a program, or its name if it is not there."""
    found = shutil.which(tmux)
    return os.path.abspath(found) if found else tmux


def _ask_version(tmux: str) -> subprocess.Popen[bytes]:
    """Start `tmux -V`, whose answer `_check_version` reads.

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
    """Wait for `tmux -V`, and check what it prints.

    Raises:
        StartError: tmux is too old, or does not run here.
    """
    output, errors = version_query.communicate()
    answer = output.decode(errors="replace").strip()
    complaint = errors.decode(errors="replace").strip()
    if is_new_enough(answer):
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


def is_new_enough(answer: str) -> bool:
    """Tell whether an answer of `tmux -V` names a version that we can use."""
    number = version(answer)
    if number:
        return number >= _OLDEST_TMUX
    return answer.startswith("tmux")  # a version without a number, such as "tmux master", is new
