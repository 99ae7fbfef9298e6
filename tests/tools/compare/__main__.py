"""Compare tools that give agents a terminal: `./dev compare`.

Each truth and each task is tried with each tool, in a process and a directory of its own. What it
has started is found by a variable in the environment, and ended.
"""

import argparse
import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from .report import Compared, page, summary
from .results import Effort, Outcome, Result
from .tasks import NIGHTMARES_VARIABLE, downloaded_nightmares, missing, tasks
from .tools import until
from .trial import TOOLS, tool_class
from .truths import TRUTHS, Truth

# The tools that need nothing but what `./dev compare` installs.
_ALWAYS = ("ours", "tmux", "libtmux", "pexpect", "pty")
_MARK = "COMPARE_RUN"
# A truth takes some seconds, and a task up to some minutes. A tool that hangs is ended after this.
_MAX_TRUTH_S = 90.0
_MAX_TASK_S = 300.0
# What has not come until then does not come.
_PATIENCE_S = 6.0


def tried(
    word: str,
    command: str,
    number: int,
    patience_s: float = _PATIENCE_S,
    grace_s: float = _PATIENCE_S,
) -> tuple[Result, str]:
    """Try a truth with a tool; return what came of it, and the tool's version.

    What the tool has to end has `grace_s` for it, all else `patience_s`.
    """
    said = {"COMPARE_PATIENCE_S": str(patience_s)}
    with _worked(word, command, str(number), said, _MAX_TRUTH_S) as (output, mark):
        if output is None:
            return Result(Outcome.BROKEN, f"nothing came of it in {_MAX_TRUTH_S:.0f} s"), ""
        return _result(TRUTHS[number], output, mark, grace_s)


def worked(word: str, command: str, name: str, nightmares: Path | None) -> Effort:
    """Have an agent work on a task with a tool; return what it took."""
    said = {NIGHTMARES_VARIABLE: str(nightmares)} if nightmares else {}
    with _worked(word, command, name, said, _MAX_TASK_S) as (output, _):
        if output is None:
            return Effort(0, 0, _MAX_TASK_S, f"nothing came of it in {_MAX_TASK_S:.0f} s")
        return Effort(**json.loads(output))


@contextlib.contextmanager
def _worked(
    word: str, command: str, what: str, env: Mapping[str, str], max_s: float
) -> Iterator[tuple[str | None, str]]:
    """Run a worker, and kill what it leaves.

    Yields:
        Its output, None if it took too long, and the mark of what it has started.
    """
    mark = secrets.token_hex(8)
    with _directory() as directory:
        home = Path(directory)
        worker = subprocess.Popen(
            [sys.executable, "-m", "compare.trial", word, what, directory, command],
            env={**_environment(home, mark), **env},
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            output, complaint = worker.communicate(timeout=max_s)
        except subprocess.TimeoutExpired:
            yield None, mark
        else:
            if not output and worker.returncode != -signal.SIGKILL:
                raise RuntimeError(complaint)
            yield output, mark
        finally:
            for pid in _marked(mark):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _directory() -> tempfile.TemporaryDirectory[str]:
    """Return a new directory whose path is short enough for a socket."""
    return tempfile.TemporaryDirectory(prefix="compare-", dir="/tmp", ignore_cleanup_errors=True)


def _result(truth: Truth, output: str, mark: str, grace_s: float) -> tuple[Result, str]:
    said = json.loads(output) if output else {}
    version = said.pop("version", "")
    result = Result(Outcome(said["outcome"]), said["seen"]) if said else None
    if truth.leaves_nothing and (result is None or result.outcome is Outcome.HOLDS):
        until(lambda: not _marked(mark), grace_s)
        left = len(_marked(mark))
        if left:
            return Result(Outcome.BROKEN, f"{left} processes are left"), version
        return Result(Outcome.HOLDS), version
    return result or Result(Outcome.BROKEN, "it was killed"), version


def _environment(home: Path, mark: str) -> dict[str, str]:
    """Return an environment of a user who has set nothing."""
    directories = dict.fromkeys(("HOME", "TMPDIR", "TMUX_TMPDIR", "XDG_RUNTIME_DIR"), str(home))
    return {
        **directories,
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents[1:3])),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "SHELL": "/bin/bash",
        _MARK: mark,
    }


def _marked(mark: str) -> list[int]:
    """Return the processes with a mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{_MARK}={mark}".encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
    return found


def compared(
    word: str,
    command: str,
    numbers: Sequence[int],
    names: Sequence[str],
    nightmares: Path | None,
    directory: Path | None,
) -> Compared:
    """Try truths and tasks with one tool, and say on standard error what came of each.

    What the directory has is not tried again; it gets what is.
    """
    title = tool_class(word).title
    file = directory / f"{word}.json" if directory else None
    done = Compared.from_json(file.read_bytes()) if file and file.exists() else Compared(title)

    def keep() -> None:
        if file:
            file.write_bytes(done.to_json())

    for number in numbers:
        if number not in done.results:
            done.results[number], told = tried(word, command, number)
            done.version = told or done.version
            result = done.results[number]
            seen = f": {result.seen!r}" if result.seen else ""
            print(f"{title}: {result.outcome}: {TRUTHS[number].sentence}{seen}", file=sys.stderr)
            keep()
    for name in names:
        if name not in done.efforts:
            done.efforts[name] = worked(word, command, name, nightmares)
            print(f"{title}: {name}: {done.efforts[name]}", file=sys.stderr)
            keep()
    return done


def main() -> None:
    """Compare, and print the summary."""
    parser = argparse.ArgumentParser(prog="./dev compare", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tools", default=",".join(_ALWAYS), metavar="LIST", help=f"of {', '.join(TOOLS)}"
    )
    parser.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="TOOL=COMMAND",
        help="compare this MCP server, too (repeatable)",
    )
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="the truths and tasks whose names match"
    )
    parser.add_argument(
        "--results", metavar="DIR", help="keep results there, and try only what has none yet"
    )
    parser.add_argument("--jobs", type=int, default=2, help="tools at once (default 2)")
    parser.add_argument("--page", metavar="FILE", help="write all rows there")
    options = parser.parse_args()
    commands = dict.fromkeys(filter(None, options.tools.split(",")), "")
    commands |= dict(server.split("=", 1) for server in options.server)
    unknown = commands.keys() - TOOLS.keys()
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    nightmares = downloaded_nightmares()
    for sentence in missing(nightmares):
        print(f"left out: {sentence}", file=sys.stderr)
    chosen = re.compile(options.only)
    numbers = [number for number, truth in enumerate(TRUTHS) if chosen.search(truth.sentence)]
    why_not = {number: TRUTHS[number].why_not() for number in numbers}
    for number, why in why_not.items():
        if why:
            print(f"left out: {TRUTHS[number].sentence} {why}", file=sys.stderr)
    directory = Path(options.results) if options.results else None
    if directory:
        directory.mkdir(parents=True, exist_ok=True)
    of_one = partial(
        compared,
        numbers=[number for number, why in why_not.items() if not why],
        names=[name for name in tasks(nightmares) if chosen.search(name)],
        nightmares=nightmares,
        directory=directory,
    )
    # They wait more than they work.
    with ThreadPoolExecutor(options.jobs) as pool:
        came = list(pool.map(of_one, commands, commands.values()))
    print(summary(came))
    if options.page:
        Path(options.page).write_text(page(came))


if __name__ == "__main__":
    main()
