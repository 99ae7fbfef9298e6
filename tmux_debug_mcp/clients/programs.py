"""The command that a client gets: the server, as it is installed."""

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from urllib.parse import unquote, urlsplit

from tmux_debug_mcp.sockets.servers import VerbError

NAME = "tmux-debug-mcp"
MODULE = "tmux_debug_mcp"
_STORE_OF_NIX = "/nix/store/"
# uv's cache may be anywhere. Source: the specification of cache directories, bford.info/cachedir.
_IN_CACHE_OF_UV = re.compile(r"(.*)/(?:archive|environments)-v[0-9]+/[^/]+/bin/[^/]+")
# What certainly starts the server, with a NUL after each word: our program, our module in a Python,
# or a launcher with at most the source of our package. A launcher installs ours in a cache.
_START = re.compile(
    rf"""(?: [^\0]*/ )?
    (?: {NAME} \0
      | python[0-9.]* \0 (?: -[PI] \0 )? -m \0 {MODULE} \0
      | (?: uvx | uv \0 tool \0 run ) \0 (?: --from [=\0] [^\0]* \0 )? {NAME} \0
      | pipx \0 run \0 (?: --spec [=\0] [^\0]* \0 )? {NAME} \0
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Program:
    """How a client starts the server, and what a person should know about it, "" for nothing."""

    words: tuple[str, ...]
    note: str = ""


def words_of(entry: object) -> list[str]:
    """Return the command line in a client's entry, as any of the clients writes it; [] for none."""
    if not isinstance(entry, dict):
        return []
    command, arguments = entry.get("command", entry.get("cmd")), entry.get("args", [])
    words = [
        *(command if isinstance(command, list) else [command]),
        *(arguments if isinstance(arguments, list) else []),
    ]
    return words if all(isinstance(word, str) for word in words) else []


def split(words: list[str]) -> tuple[list[str], list[str]] | None:
    """Return what starts the server in a command, and its options; None if that isn't certain.

    A word like ours may be something else, such as a directory, or a program on another machine.
    """
    line = "".join(f"{word}\0" for word in words)
    found = _START.match(line)
    if not found or line.count("\0") > len(words):
        return None
    # Some clients pass a word with blanks to a shell, as several words.
    if re.search(r"\s", words[0]) and not os.path.isfile(words[0]):
        return None
    count = found[0].count("\0")
    return words[:count], words[count:]


def is_direct(start: list[str]) -> bool:
    """Return whether a start of the server, as from `split`, needs no launcher."""
    return len(start) == 1 or start[-1] == MODULE


def find(started_as: str, interpreter: str, environ: Mapping[str, str]) -> Program:
    """Return the command of the server installed beside this program, or else on PATH.

    `started_as` is how this program was called, and `interpreter` its Python.

    Raises:
        VerbError: The server is in neither place.
    """
    path = environ.get("PATH")
    caller = started_as if "/" in started_as else shutil.which(started_as, path=path)
    known = filter(None, (caller, interpreter))
    beside = [os.path.join(os.path.dirname(program), NAME) for program in known]
    candidates = map(os.path.abspath, [*beside, shutil.which(NAME, path=path) or NAME])
    found = next((program for program in candidates if os.access(program, os.X_OK)), None)
    if found is None:
        raise VerbError(f"No {NAME} next to this program or on PATH. Give its path with --command.")
    launcher = _launcher(found)
    if launcher:
        note = f"This {NAME} is in a cache that may be emptied, so the entry uses '{launcher[0]}'."
        return Program(launcher, note)
    if not found.startswith(_STORE_OF_NIX):
        return Program((found,))
    # A Nix profile's link on PATH stays when the package is updated.
    for directory in (path or "").split(":"):
        link = os.path.join(directory, NAME)
        is_link = os.path.isabs(link) and not link.startswith(_STORE_OF_NIX)
        if is_link and os.path.realpath(link) == os.path.realpath(found):
            return Program((link,))
    note = "Nix may garbage-collect this path. Install the package, or use `config nix`."
    return Program((found,), note)


def named(command: str, environ: Mapping[str, str]) -> Program:
    """Return the command that a person names, by its path or its name on PATH."""
    found = shutil.which(os.path.expanduser(command), path=environ.get("PATH"))
    if found is None:
        raise VerbError(f"--command '{command}' can't be run. Give the path to {NAME}.")
    words = (os.path.abspath(found),)
    if split(list(words)) is None:
        raise VerbError(f"--command '{command}' is not {NAME}. Give the path to {NAME}.")
    return Program(words)


def _launcher(program: str) -> tuple[str, ...]:
    """Return the command for a program in a cache of uv or pipx, () for an installed program."""
    found = _IN_CACHE_OF_UV.fullmatch(program)
    if found and os.path.exists(f"{found[1]}/CACHEDIR.TAG"):
        start, flag = ["uvx"], "--from"
    elif "/.cache/pipx/" in program:
        start, flag = ["pipx", "run"], "--spec"
    else:
        return ()
    source = _source()
    return (*start, *([flag, source] if source else []), NAME)


def _source() -> str:
    """Return where this package came from, "" for an index. Source: PEP 610."""
    try:
        text = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return ""
    if not text:
        return ""
    facts = json.loads(text)
    url = str(facts["url"])
    if url.startswith("file://"):
        return unquote(urlsplit(url).path)
    revision = facts.get("vcs_info", {})
    return f"{revision['vcs']}+{url}@{revision['commit_id']}" if revision else url
