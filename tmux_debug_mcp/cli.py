"""The command `tmux-debug-mcp`: arguments and environment in, exit statuses out.

A detached server keeps running after its clients end, until nobody has used it for a while.
`command.starting` forks its process, and waits for it to write into a pipe that it is ready, or why
it can't start. If the waiting process is killed, the server still starts.
"""

import argparse
import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from . import __version__
from .errors import StartError
from .options import NO_AUDIT, OPTIONS, Values, checked, parse, unknown
from .sockets.servers import JOINED, READY
from .tmux.versions import is_new_enough
from .verbs.registry import LOOKING, SECTIONS

if TYPE_CHECKING:
    from .audit import AuditLog
    from .server import Configuration
    from .settings import Settings

# The file for a detached server's complaints, such as a bug of ours, or why it ended.
_ERRORS = "errors.log"


def run(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the command and return its exit status; a server ends the process.

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
        tmux, version_query = _ask_version(values["tmux"])
        _check_version(tmux, version_query)
        from .demo.debugging import run_demo  # noqa: PLC0415  it imports an MCP client

        return run_demo(tmux)
    with _importing():
        configuration = configuration_of(values, environ)
        import anyio  # noqa: PLC0415

        from .server import serve  # noqa: PLC0415
    anyio.run(serve, configuration)
    return 0


@contextlib.contextmanager
def _importing() -> Iterator[None]:
    """Disable the garbage collector during the block, then freeze what it made.

    What is imported stays. Scanning it takes a seventh of the time of the imports, and later longer
    than a call.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


def configuration_of(
    values: Values, environ: Mapping[str, str], *, is_detached: bool = False
) -> "Configuration":
    """Return what a server with these options and this environment serves.

    Raises:
        StartError: An option's value can't be used, or tmux is missing or too old.
    """
    tmux, version_query = _ask_version(values["tmux"])
    # These imports take most of the start-up time. Meanwhile, tmux prints its version.
    from .logs.archive import Archive  # noqa: PLC0415
    from .server import Configuration  # noqa: PLC0415
    from .settings import path_of  # noqa: PLC0415

    _check_version(tmux, version_query)
    settings, toolsets = checked({**values, "tmux": tmux}, environ)

    archive = None
    log_directory = path_of(values["log-dir"])
    if log_directory is None and any(toolset.keeps_logs for toolset in toolsets):
        log_directory = settings.state_dir / "logs"
    if log_directory:
        archive = Archive(log_directory)
        archive.prepare()

    audit = _audit_of(values, settings, is_detached=is_detached)
    return Configuration(toolsets, settings, audit, archive)


def _audit_of(values: Values, settings: "Settings", *, is_detached: bool) -> "AuditLog | None":
    """Return the audit that the options ask for, or else the default one of a detached server.

    Without the latter, a server starts all the same, and says so: nobody has asked for it.

    Raises:
        StartError: What the options ask for can't be opened.
    """
    from .audit import AuditLog, DefaultAudit, default_path  # noqa: PLC0415
    from .settings import path_of  # noqa: PLC0415

    captures = path_of(values["audit-full"])
    if is_detached and not values["audit"]:
        try:
            path = default_path(settings.state_dir, settings.cwd.resolve())
            return DefaultAudit(path, captures)
        except StartError as error:
            sys.stderr.write(f"tmux-debug: {error} Calls are not recorded now.\n")
    records = None if values["audit"] == NO_AUDIT else path_of(values["audit"])
    return AuditLog(records, captures) if records or captures else None


def run_detached(directory: str, values: Values, ready_fd: int, environ: Mapping[str, str]) -> None:
    """Make the directory, and serve at a socket in it until the lease is over.

    Write `READY`, `JOINED`, or why the server can't start, to `ready_fd`.
    """
    with _importing():
        import anyio  # noqa: PLC0415

        from .server import serve_detached  # noqa: PLC0415
        from .settings import seconds_of  # noqa: PLC0415
        from .sockets.listener import claim  # noqa: PLC0415

    # The command line that forked this process ends at a closed pipe. A server must not: a caller
    # may be killed before it reads its answer.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # Until the server is ready, its complaints go to whoever waits for it.
    os.dup2(ready_fd, 2)
    os.close(ready_fd)
    try:
        keep_s = seconds_of(values["keep"])
        configuration = configuration_of(values, environ, is_detached=True)
        listener = claim(directory)
    except StartError as error:
        _tell(f"{error}\n".encode())
        return
    if listener is None:
        _tell(JOINED)
        return

    def ready() -> None:
        """Say so. From now on, the server's complaints go to a file that outlives it."""
        state = configuration.settings.state_dir
        try:
            state.mkdir(0o700, parents=True, exist_ok=True)
            errors = os.open(state / _ERRORS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError:
            errors = os.open(os.devnull, os.O_WRONLY)
        _tell(READY)
        os.dup2(errors, 2)
        os.close(errors)

    anyio.run(serve_detached, configuration, listener, keep_s, ready)


def _tell(text: bytes) -> None:
    """Write to whoever started a detached server, unless they were killed."""
    with contextlib.suppress(BrokenPipeError):
        os.write(2, text)


def _help() -> str:
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


def _ask_version(program: str) -> tuple[str, subprocess.Popen[bytes]]:
    """Return tmux's absolute path, and a running `tmux -V`, whose answer `_check_version` reads."""
    if sys.platform != "linux":
        raise StartError(f"The server runs only on Linux, not on {sys.platform}.")
    found = shutil.which(program)
    tmux = os.path.abspath(found) if found else program
    try:
        query = subprocess.Popen(
            [tmux, "-V"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise StartError(
            f"tmux is needed, but '{tmux}' can't be started ({error.strerror}). Install tmux 3.3 "
            "or newer, or point --tmux to it."
        ) from error
    return tmux, query


def _check_version(tmux: str, version_query: subprocess.Popen[bytes]) -> None:
    """Wait for `tmux -V`, and check what it prints."""
    output, errors = version_query.communicate()
    answer = output.decode(errors="replace").strip()
    complaint = errors.decode(errors="replace").strip()
    if is_new_enough(answer):
        return
    if "UTF-8" in complaint:
        raise StartError(
            f"'{tmux} -V' says: {complaint}. tmux needs a UTF-8 locale. Install C.UTF-8 or "
            "en_US.UTF-8, or set LC_CTYPE to one that locale -a lists."
        )
    raise StartError(
        f"tmux 3.3 or newer is needed, but '{tmux}' is {answer or complaint or 'not tmux'}. "
        "Install a newer one, or point --tmux to one."
    )
