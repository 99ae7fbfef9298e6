"""The recipes in `docs/recipes`: pages with programs, commands and what these print.

A page's programs are blocks whose fence names a file: ```` ```python shop.py ````. Blocks of the
language `console` have commands behind `$ `, each with the lines of its output that matter
(`sessions.py` says how they are compared). Times, sizes in KiB, process ids and cursors differ from
run to run. Ports do, too; pages call them 40371, 40372 and so on.

Run as a program with the names of pages, or none for all, this runs their commands, and writes the
output of those whose output is another one into the pages.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hosts import NoHostError, container, ssh_host
from sessions import facts_of
from support import PATIENCE_S

PAGES = Path(__file__).parents[2] / "docs" / "recipes"
# What pages call the directory that they run in.
SHOWN_DIRECTORY = "/home/me/work"
MAX_COMMANDS = 8

_FILE = re.compile(r"^```\w+ (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")
_FIRST_PORT = 40371
_SINCE = re.compile(r"(?<=--since )\d+")
_SIZE = re.compile(r"\b\d+(?= KiB\b)")
_STABLE = (
    (re.compile(r"(?<=pid )\d+"), "4711"),
    (re.compile(r"\b\d+\.\d(?= s\b)"), "0.2"),
)


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a page.

    Attributes:
        line: The command line.
        output: What the page shows of its output, with a line feed behind each line.
    """

    line: str
    output: str


def names() -> list[str]:
    """Return the names of the pages with commands."""
    paths = sorted(PAGES.glob("*.md"))
    return [path.stem for path in paths if commands_of(path.read_text())]


def files_of(page: str) -> dict[str, str]:
    """Return the programs of a page by the names of their files."""
    return dict(_FILE.findall(page))


def commands_of(page: str) -> list[Command]:
    """Return the commands of a page."""
    return [command for block in _CONSOLE.findall(page) for command in _parsed(block)]


def _parsed(block: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        yield Command(line, output)


@dataclass(frozen=True, slots=True)
class Place:
    """Where commands run.

    Attributes:
        directory: Their directory.
        env: Their environment. The first directory of its PATH is for programs of a test.
        ports: The ports that have been printed, by what pages call them.
    """

    directory: Path
    env: Mapping[str, str]
    ports: dict[str, str] = field(default_factory=dict)

    def run(self, line: str) -> str:
        """Return what a command line of a page prints, whatever its exit status is."""
        line = _PORT.sub(lambda port: self.ports.get(port[0], port[0]), line)
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.directory,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
        text = done.stdout.decode().replace(str(self.directory), SHOWN_DIRECTORY)
        text = _PORT.sub(lambda port: self._shown_port(port[0]), text)
        return "".join(f"{row.rstrip()}\n" for row in text.splitlines())

    def _shown_port(self, port: str) -> str:
        """Return what pages call a port."""
        for shown, actual in self.ports.items():
            if port in (shown, actual):
                return shown
        shown = str(_FIRST_PORT + len(self.ports))
        self.ports[shown] = port
        return shown

    @property
    def programs(self) -> Path:
        """The directory for programs of a test."""
        return Path(self.env["PATH"].partition(":")[0])


@contextmanager
def place(name: str, root: Path) -> Iterator[Place]:
    """Make a place for a page, with its programs; at the end, end the server that was started.

    Args:
        name: The name of the page.
        root: An empty directory with a short path, for sockets are in it.

    Raises:
        NoHostError: This machine can't have the host that the page uses.
    """
    page = (PAGES / f"{name}.md").read_text()
    directory, programs, runtime = root / "work", root / "bin", root / "run"
    for path in (directory, programs, runtime):
        path.mkdir(mode=0o700)
    _add_program(programs / "tmux-debug", "tmux_debug_mcp.command.main")
    _add_program(programs / "tmux-debug-mcp", "tmux_debug_mcp.command.serve")
    (programs / "python3").symlink_to(sys.executable)
    for program in _programs(page):
        if (beside := Path(sys.executable).with_name(program)).exists():
            (programs / program).symlink_to(beside)
    kept = ("HOME", "LANG", "MCP_DEBUG_TEST", "PYTHONPATH", "SHELL", "TERM", "USER")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    env |= {"PATH": f"{programs}:{os.environ['PATH']}", "XDG_RUNTIME_DIR": str(runtime)}
    made = Place(directory, env)
    with _HOSTS.get(name, _here)(root, directory, env):
        try:
            yield made
        finally:
            made.run(f"{_STOP.get(name, '')} tmux-debug stop")


@contextmanager
def _here(_root: Path, _directory: Path, _env: Mapping[str, str]) -> Iterator[None]:
    yield


# The hosts of pages that use another one, and how commands run there.
_HOSTS = {"ssh": ssh_host, "container": container}
_STOP = {"ssh": "ssh build", "container": "podman exec task"}


def _add_program(path: Path, module: str) -> None:
    run = f"from {module} import main; main()"
    path.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-c", run])} "$@"\n')
    path.chmod(0o755)


@dataclass(frozen=True, slots=True)
class Done:
    """A command that was run.

    Attributes:
        command: The command.
        output: What it printed.
        is_as_shown: The page shows this output.
    """

    command: Command
    output: str
    is_as_shown: bool


def run(page: str, place: Place) -> Iterator[Done]:
    """Run the commands of a page, and yield each."""
    for name, text in files_of(page).items():
        path = place.directory / name
        path.write_text(text)
    cursors: dict[str, str] = {}
    for command in commands_of(page):
        output = place.run(_with_cursors(command.line, cursors))
        found = facts_of(_SIZE.sub("…", command.output), output)
        cursors |= found or {}
        yield Done(command, output, is_as_shown=found is not None)


def _with_cursors(line: str, cursors: Mapping[str, str]) -> str:
    """Return a command line with this run's cursors behind `--since`."""
    return _SINCE.sub(lambda since: cursors.get(since[0], since[0]), line)


def rewritten(page: str, done: list[Done]) -> str:
    """Return a page with the output of the commands whose output is another one."""
    new = ""
    for one in done:
        line = f"$ {one.command.line}\n"
        before, _, page = page.partition(line + one.command.output)
        new += before + line + (one.command.output if one.is_as_shown else _stable(one.output))
    return new + page


def _stable(output: str) -> str:
    """Return output with the times and process ids that pages have."""
    for varying, shown in _STABLE:
        output = varying.sub(shown, output)
    return output


def check_programs(page: str) -> None:
    """Check that the programs are here that a page says it needs, beside Python or on the PATH.

    Raises:
        NoHostError: One is missing.
    """
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for name in _programs(page):
        if not shutil.which(name, path=path):
            raise NoHostError(f"{name} is missing")


def _programs(page: str) -> list[str]:
    """Return the programs that a page says it needs."""
    lines = re.findall(r"^<!-- needs: (.*) -->$", page, re.MULTILINE)
    return " ".join(lines).split()


def main(chosen: list[str]) -> None:
    for name in chosen or names():
        path = PAGES / f"{name}.md"
        page = path.read_text()
        try:
            check_programs(page)
        except NoHostError as error:
            print(f"{path}: unchanged: {error}", file=sys.stderr)
            continue
        with (
            tempfile.TemporaryDirectory(prefix="mcp-", dir="/tmp") as root,
            place(name, Path(root)) as here,
        ):
            done = list(run(page, here))
        path.write_text(rewritten(page, done))


if __name__ == "__main__":
    main(sys.argv[1:])
