"""The verb `config`: shows the entry that makes a client start the server, or writes it."""

import argparse
import re
import shlex
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tmux_debug_mcp.errors import StartError
from tmux_debug_mcp.option_checks import checked
from tmux_debug_mcp.options import OptionError, parse_all
from tmux_debug_mcp.own_command import own_command, own_program
from tmux_debug_mcp.settings import state_directory
from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.verbs.parsing import parser_of
from tmux_debug_mcp.verbs.registry import VERBS
from tmux_debug_mcp.vt.printable import visible

from . import agent_file, programs, storage, yaml_file
from .editing import EditError, Slot
from .table import CLAUDE_CODE, CLIENTS, Homes

_NAME = "tmux-debug"
_NIX = "nix"
_SUBAGENT = "subagent"
_COMMAND = "command"
# The exit status if the person has to make the change.
_BY_HAND = 3
_FIRST_TASK = (
    "Start `python3 -m http.server` in a pane, request a page that doesn't exist, and show me what "
    "the server logged."
)
_NIX_LINES = """\
In a flake, with tmux-debug-mcp among its inputs:

inherit (tmux-debug-mcp.lib.mkLib pkgs) mcpConfig mkSandbox profiles;

# a client's config file, such as Claude Code's .mcp.json:
pkgs.writeText "mcp.json" (builtins.toJSON (mcpConfig { tmux-debug = { }; }))

# a sandbox with Claude Code, whose subagent has the tools:
mkSandbox { profile = profiles.base; mcp.tmux-debug = { }; agent = pkgs.claude-code; }"""


def add_arguments(made: argparse.ArgumentParser) -> None:
    """Add the arguments to the parser of the verb."""
    made.usage = (
        "tmux-debug config CLIENT [--scope SCOPE] [--name NAME] [--command PROGRAM] "
        "[--write | --remove] [-- OPTIONS]"
    )
    made.description = (
        "Show the entry that makes an MCP client start tmux-debug-mcp, or write it to the client's "
        "file."
    )
    made.epilog = (
        "Everything after -- is passed to tmux-debug-mcp as options, such as: -- --keep 60m. "
        "Without --, an existing entry keeps its options, and a new subagent gets --keep 30m, so "
        "that what it starts outlives it. The exit status is 3 if config can't "
        "make the change and prints what to do instead."
    )
    clients = (*CLIENTS, _NIX)
    made.add_argument(
        "client", metavar="CLIENT", nargs="?", choices=clients, help=", ".join(clients)
    )
    made.add_argument(
        "--scope",
        choices=("user", "project", _SUBAGENT, _COMMAND),
        help="user = for you (default); project = for the current directory. Claude Code only: "
        "subagent = only a subagent has the tools (the default there); command = print a line that "
        "adds the server",
    )
    made.add_argument("--name", default=_NAME, help=f"the entry's name (default: {_NAME})")
    made.add_argument("--command", metavar="PROGRAM", help="the tmux-debug-mcp to start")
    action = made.add_mutually_exclusive_group()
    action.add_argument("--write", action="store_true", help="write the entry to the client's file")
    action.add_argument(
        "--remove", action="store_true", help="remove the entry from the client's file"
    )


def run(words: list[str], environ: Mapping[str, str]) -> int:
    """Run the verb and return its exit status.

    Raises:
        VerbError: It can't be done. The client's file is unchanged.
    """
    options = None
    if "--" in words:
        index = words.index("--")
        words, options = words[:index], words[index + 1 :]
    arguments = parser_of(VERBS["config"]).parse_args(words)
    if arguments.client is None:
        raise VerbError(f"Give a CLIENT: {', '.join((*CLIENTS, _NIX))}")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", arguments.name):
        raise VerbError("--name takes at most 64 letters, digits, - and _.")
    if options:
        try:
            checked(parse_all(options, {}), environ)
        except (OptionError, StartError) as error:
            raise VerbError(str(error)) from None
    if arguments.client == _NIX:
        if arguments.write or arguments.remove or options:
            raise VerbError(
                "For Nix, config only prints lines to copy. Use it without --write, --remove or "
                "options: tmux-debug config nix"
            )
        _print(_NIX_LINES)
        return 0
    return _Setup(arguments, options, environ).run()


class _Setup:
    """Our entry in the file of a client: shown, written or removed.

    Without `options` (None), an entry keeps its own, and a new entry gets the defaults.
    """

    def __init__(
        self, arguments: argparse.Namespace, options: list[str] | None, environ: Mapping[str, str]
    ) -> None:
        self._arguments = arguments
        self._options = options
        self._environ = environ
        self._backups = state_directory(environ) / "backups"
        client = CLIENTS[arguments.client]
        is_claude_code = arguments.client == CLAUDE_CODE
        own_scopes = (_SUBAGENT, _COMMAND) if is_claude_code else ()
        scopes = [*own_scopes, *client.places]
        self._scope: str = arguments.scope or scopes[0]
        if self._scope not in scopes:
            raise VerbError(
                f"{client.title} has no scope {self._scope}. Choose from {', '.join(scopes)}."
            )
        homes = Homes.of_caller(environ)
        self._project = homes.project if arguments.scope == "project" else None
        name = arguments.name
        shape = partial(client.shape, name)
        if self._scope in own_scopes:
            self._path = homes.agents / f"{name}.md"
            self._slot = Slot(agent_file, ("mcpServers", name), shape, agent_file.OPTIONS)
        else:
            self._path = client.places[self._scope](homes)
            self._slot = Slot(client.language, (client.key, name), shape)
        self._title, self._permission = client.title, client.permission
        self._is_rewritten_by_client = is_claude_code and self._scope == "user"

    def run(self) -> int:
        arguments = self._arguments
        if self._scope == _COMMAND and (arguments.write or arguments.remove):
            raise VerbError(
                "--scope command only prints a line to run. Omit --write and --remove, or choose "
                "another scope."
            )
        if arguments.remove:
            return self._remove()
        if arguments.command:
            program = programs.named(arguments.command, self._environ)
        else:
            program = programs.find(sys.argv[0], sys.executable, self._environ)
        if arguments.write:
            return self._write(program)
        self._show(program)
        return 0

    def _show(self, program: programs.Program) -> None:
        words = [*program.words, *(self._options or [])]
        line = shlex.join(
            ["claude", "mcp", "add", "--scope", "user", self._arguments.name, "--", *words]
        )
        if self._scope == _COMMAND:
            _print(line)
            return
        self._show_entry(program)
        if self._slot.language is not yaml_file:
            _print(f"Or let config write it:\n\n{self._line_to_write(program)}")
        if self._is_rewritten_by_client:
            _print(f"\nClaude Code also writes to this file. Let it add the entry:\n\n{line}")
        _print_note(program)

    def _show_entry(self, program: programs.Program) -> None:
        place = "" if self._scope == _SUBAGENT else f", at {'.'.join(self._slot.keys)}"
        entry = self._slot.only(list(program.words), self._options)
        _print(f"Put this in {self._path}{place}:\n\n{entry}")

    def _write(self, program: programs.Program) -> int:
        file = storage.read(self._path, self._project)
        before = file.text
        try:
            after = self._slot.merged(before, list(program.words), self._options)
        except EditError as error:
            self._report(error)
            self._show_entry(program)
            if self._options is None and self._arguments.name in before:
                _print("If the entry that is there has options of the server, keep them.")
            return _BY_HAND
        if after == before:
            _print(f"{self._path} already has this entry. Nothing was changed.")
            return 0
        self._replace(file, after)
        if self._is_rewritten_by_client:
            _print("Claude Code also writes to this file. Check for the entry: claude mcp list")
        _print_note(program)
        name = self._arguments.name
        who = f"Let the subagent {name} do this: " if self._scope == _SUBAGENT else ""
        _print(f"Restart {self._title}, then ask it:\n\n{who}{_FIRST_TASK}")
        _print(f"\n{self._permission.format(name)} To check the entry: {own_command()} doctor")
        return 0

    def _remove(self) -> int:
        file = storage.read(self._path, self._project)
        before = file.text
        if self._arguments.name not in before:
            return self._have_nothing_to_remove()
        try:
            entry = self._slot.entry(before)
            after = self._slot.removed(before)
        except EditError as error:
            self._report(error)
            what = "the file" if self._scope == _SUBAGENT else f"{'.'.join(self._slot.keys)} from"
            _print(f"If you no longer want the entry, remove {what} {self._path}.")
            return _BY_HAND
        if after == before:
            return self._have_nothing_to_remove()
        if after:
            self._replace(file, after)
            return 0
        # A file as we write it needs no backup.
        is_as_written = before == self._slot.language.put("", self._slot.keys, entry)
        backup = storage.delete(file, None if is_as_written else self._backups)
        _print(f"Deleted {self._path}, which contained nothing else.{_where(backup)}")
        return 0

    def _have_nothing_to_remove(self) -> int:
        _print(f"{self._path} has no entry '{self._arguments.name}'. Nothing was changed.")
        return 0

    def _report(self, error: EditError) -> None:
        place = f":{error.line}:{error.column}" if error.line else ""
        text = f"{self._path}{place} {error.reason}. Nothing was changed."
        sys.stdout.flush()
        sys.stderr.write(f"tmux-debug: {visible(text)}\n")

    def _replace(self, file: storage.File, text: str) -> None:
        backup = storage.write(file, text, self._backups)
        sys.stdout.write(storage.diff(self._path, file.text, text))
        _print(f"\nWrote {self._path}.{_where(backup)}")

    def _line_to_write(self, program: programs.Program) -> str:
        """Return the command that writes the entry as this command shows it."""
        arguments = self._arguments
        # A launcher such as uvx knows only the server's program, which has this verb, too.
        is_launched = len(program.words) > 1
        this = program.words if is_launched else (own_program(is_for_here=True),)
        words = [*this, "config", arguments.client]
        words += ["--scope", arguments.scope] if arguments.scope else []
        words += ["--name", arguments.name] if arguments.name != _NAME else []
        words += ["--command", arguments.command] if arguments.command else []
        words += ["--write"]
        words += ["--", *self._options] if self._options is not None else []
        return shlex.join(words)


def _where(backup: Path | None) -> str:
    return f" A backup is in {backup}." if backup else ""


def _print_note(program: programs.Program) -> None:
    if program.note:
        _print(f"\n{program.note}")


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
