"""The command `tmux-debug-mcp`: arguments and environment in, exit statuses out.

A detached server keeps running after its clients end, until nobody has used it for a while.
`command.starting` forks its process, and waits for it to write into a pipe that it is ready, or why
it can't start. If the waiting process is killed, the server still starts.
"""

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

from . import __version__
from .errors import StartError
from .options import OPTIONS, Values, parse, unknown
from .tmux.versions import is_new_enough
from .verbs.registry import LOOKING, SECTIONS


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
    tmux, version_query = _ask_version(values["tmux"])
    if others:
        _check_version(tmux, version_query)
        from .demo.debugging import run_demo  # noqa: PLC0415  it imports an MCP client

        return run_demo(tmux)
    # The import takes most of the start-up time. Meanwhile, tmux prints its version.
    with _importing():
        from .serving import serve  # noqa: PLC0415
    _check_version(tmux, version_query)
    serve({**values, "tmux": tmux}, environ)
    return 0


def run_detached(directory: str, values: Values, ready_fd: int, environ: Mapping[str, str]) -> None:
    """Serve at a socket in this directory until the lease is over.

    Write `READY`, `JOINED`, or why the server can't start, to `ready_fd`.
    """
    # The command line that forked this process ends at a closed pipe. A server must not: a caller
    # may be killed before it reads its answer.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # Until the server is ready, its complaints go to whoever waits for it.
    os.dup2(ready_fd, 2)
    os.close(ready_fd)
    with _importing():
        from .serving import serve_detached, tell  # noqa: PLC0415  the whole server
    try:
        tmux, version_query = _ask_version(values["tmux"])
        _check_version(tmux, version_query)
        serve_detached(directory, {**values, "tmux": tmux}, environ)
    except StartError as error:
        tell(f"{error}\n".encode())


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


def _help() -> str:
    import argparse  # noqa: PLC0415  it stays in memory

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
