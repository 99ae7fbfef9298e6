"""The verb `config`: shows what makes a client start the server, or puts it into its file."""

import argparse
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from tmux_debug_mcp.errors import StartError
from tmux_debug_mcp.options import OptionError, checked, parse, parse_all, value_of
from tmux_debug_mcp.settings import state_directory
from tmux_debug_mcp.sockets.servers import CommandError
from tmux_debug_mcp.verbs.parsing import parser_of
from tmux_debug_mcp.verbs.registry import VERBS

from . import agent_file, files, merging, programs
from .formats import FormatError
from .merging import Slot
from .table import CLAUDE_CODE, CLIENTS, Homes, agents_directory

_NAME = "tmux-debug"
_NIX = "nix"
_SUBAGENT = "subagent"
_COMMAND = "command"
_NIX_LINES = """\
In a flake, with tmux-debug-mcp among its inputs:

inherit (tmux-debug-mcp.lib.mkLib pkgs) mcpConfig mkSandbox profiles;

# what a client reads, such as .mcp.json of Claude Code:
pkgs.writeText "mcp.json" (builtins.toJSON (mcpConfig { tmux-debug = { }; }))

# a sandbox with a Claude Code, whose subagent has the tools:
mkSandbox { profile = profiles.base; mcp.tmux-debug = { }; agent = pkgs.claude-code; }"""


def add_arguments(made: argparse.ArgumentParser) -> None:
    """Add the arguments to the parser of the verb."""
    made.usage = (
        "tmux-debug config CLIENT [--scope SCOPE] [--name NAME] [--command PROGRAM] "
        "[--write | --remove] [-- OPTIONS]"
    )
    made.description = (
        "Shows what makes an MCP client start tmux-debug-mcp, or puts it into the client's own "
        "file."
    )
    made.epilog = (
        "What is behind -- are options of tmux-debug-mcp, such as: -- --keep 60m. Without --, an "
        "entry that is there keeps its options."
    )
    made.add_argument("client", metavar="CLIENT", choices=(*CLIENTS, _NIX), help=_clients())
    made.add_argument(
        "--scope",
        choices=("user", "project", _SUBAGENT, _COMMAND),
        help="user: for you (default); project: for the current directory. Claude Code also has "
        "subagent: only a subagent of yours has the tools (its default), and command: the line "
        "that adds the server",
    )
    made.add_argument("--name", default=_NAME, help=f"the entry's name (default: {_NAME})")
    made.add_argument("--command", metavar="PROGRAM", help="the tmux-debug-mcp to start")
    action = made.add_mutually_exclusive_group()
    action.add_argument("--write", action="store_true", help="put it into the client's file")
    action.add_argument("--remove", action="store_true", help="take it out of the client's file")


def run(words: list[str], environ: Mapping[str, str]) -> int:
    """Run it, and return its exit status.

    Raises:
        CommandError: It can't be done. The client's file is as it was.
    """
    own, options = _divided(words)
    arguments = parser_of(VERBS["config"]).parse_args(own)
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", arguments.name):
        raise CommandError("--name takes letters, digits, - and _, at most 64 of them.")
    if options:
        _check(options, environ)
    if arguments.client == _NIX:
        return _nix(arguments, options or [])
    setup = _Setup(arguments, options, environ)
    try:
        if setup.scope == _COMMAND:
            _print(setup.line())
        elif arguments.write:
            setup.write()
        elif arguments.remove:
            setup.remove()
        else:
            setup.show()
    except FormatError as error:
        place = f":{error.line}:{error.column}" if error.line else ""
        raise CommandError(f"{setup.path}{place} {error.reason}. It stays as it was.") from None
    sys.stdout.flush()  # `tmux-debug` ends without it
    return 0


class _Setup:
    """A client that gets the server, or loses it.

    Args:
        arguments: The command line.
        options: The server's options, None for those of an entry that is there.
        environ: The environment.

    Attributes:
        scope: For whom.
        path: The client's file.
    """

    def __init__(
        self, arguments: argparse.Namespace, options: list[str] | None, environ: Mapping[str, str]
    ) -> None:
        self._arguments = arguments
        self._options = options
        self._environ = environ
        self._backups = state_directory(environ) / "backups"
        self._client = CLIENTS[arguments.client]
        self.scope = self._chosen_scope()
        homes = Homes(environ, Path.cwd())
        name = arguments.name
        if self.scope in (_SUBAGENT, _COMMAND):
            self.path = agents_directory(homes) / f"{name}.md"
            self._slot = Slot(agent_file, ("mcpServers", 0, name), self._entry)
        else:
            self.path = self._client.places[self.scope](homes)
            self._slot = Slot(self._client.format, (self._client.key, name), self._entry)

    def show(self) -> None:
        """Print what is to be put where."""
        program = self._program()
        words = [*program.words, *(self._options or [])]
        if self.scope == _SUBAGENT:
            snippet = self._agent(self._entry(words))
        else:
            snippet = next(self._client.format.put("", self._slot.path, self._entry(words)))
        _print(f"Put this into {self.path}:\n\n{snippet}")
        _print(f"Or have it put there:\n\n{self._own_line(program, '--write')}")
        if self._is_rewritten_by_client:
            _print(f"\nClaude Code writes this file, too. Let it do it instead:\n\n{self.line()}")
        self._print_note(program)

    def line(self) -> str:
        """Return the line that has Claude Code add the server itself.

        Raises:
            CommandError: Something else than this line is wanted.
        """
        if self.scope == _COMMAND and (self._arguments.write or self._arguments.remove):
            raise CommandError(
                "The scope command only shows a line. Run that line, or choose another scope."
            )
        words = [*self._program().words, *(self._options or [])]
        return shlex.join(
            ["claude", "mcp", "add", "--scope", "user", self._arguments.name, "--", *words]
        )

    def write(self) -> None:
        """Put our entry into the client's file."""
        program = self._program()
        file = self._read()
        before = file.text or ""
        after = self._merged(before, list(program.words))
        if after == before:
            _print(f"{self.path} has this already. Nothing is changed.")
            return
        backup = files.write(file, after, self._backups)
        self._print_change(before, after, backup)
        if self._is_rewritten_by_client:
            _print("Claude Code writes this file, too. See whether it is there: claude mcp list")
        self._print_note(program)

    def remove(self) -> None:
        """Take our entry out of the client's file."""
        file = self._read()
        before = file.text or ""
        after: str | None
        if self.scope == _SUBAGENT:
            after = self._without_agent(before)
        else:
            after = merging.removed(before, self._slot)
        if after == before:
            _print(f"{self.path} has no '{self._arguments.name}'. Nothing is changed.")
            return
        if after is None:
            is_edited = self.scope == _SUBAGENT and not self._is_as_written(before)
            backup = files.delete(file, self._backups if is_edited else None)
            kept = f" What it had is in {backup}." if backup else ""
            _print(f"Deleted {self.path}, which had nothing else.{kept}")
            return
        self._print_change(before, after, files.write(file, after, self._backups))

    def _read(self) -> files.File:
        return files.read(self.path, Path.cwd() if self.scope == "project" else None)

    def _merged(self, before: str, program: list[str]) -> str:
        if self.scope != _SUBAGENT:
            return merging.merged(before, self._slot, program, self._options)
        if not before.strip():
            return self._agent(self._entry([*program, *(self._options or [])]))
        entry = self._slot.entry(before)
        if entry is None:
            raise CommandError(
                f"{self.path} is a subagent without tmux-debug-mcp. Choose another name with "
                "--name, or remove the file."
            )
        after = merging.merged(before, self._slot, program, self._options)
        return agent_file.with_prompt_for(
            after, _toolsets(entry), _toolsets(self._slot.entry(after))
        )

    def _without_agent(self, before: str) -> str | None:
        """Return what remains of a subagent's file: nothing, if it is ours."""
        entry = self._slot.entry(before)
        if entry is None:
            return before
        merging.options_of(entry)
        return None

    def _is_as_written(self, text: str) -> bool:
        entry = self._slot.entry(text)
        return isinstance(entry, dict) and self._agent(entry) == text

    def _agent(self, entry: merging.Entry) -> str:
        return agent_file.text_of(self._arguments.name, entry, _toolsets(entry))

    def _entry(self, words: list[str]) -> merging.Entry:
        return self._client.shape(self._arguments.name, words)

    def _program(self) -> programs.Program:
        if self._arguments.command:
            return programs.given(self._arguments.command, self._environ)
        return programs.find(sys.argv[0], sys.executable, self._environ)

    def _chosen_scope(self) -> str:
        """Return the scope.

        Raises:
            CommandError: The client does not have it.
        """
        is_claude_code = self._arguments.client == CLAUDE_CODE
        scopes = [*((_SUBAGENT, _COMMAND) if is_claude_code else ()), *self._client.places]
        scope: str = self._arguments.scope or scopes[0]
        if scope not in scopes:
            raise CommandError(
                f"{self._client.title} has no scope {scope}. Choose of {', '.join(scopes)}."
            )
        return scope

    @property
    def _is_rewritten_by_client(self) -> bool:
        return self._arguments.client == CLAUDE_CODE and self.scope == "user"

    def _own_line(self, program: programs.Program, action: str) -> str:
        given = self._arguments
        # A launcher such as uvx knows the server by name, which has the verb, too.
        is_launched = len(program.words) > 1
        words = [*(program.words if is_launched else ("tmux-debug",)), "config", given.client]
        words += ["--scope", given.scope] if given.scope else []
        words += ["--name", given.name] if given.name != _NAME else []
        words += ["--command", given.command] if given.command else []
        words += [action]
        words += ["--", *self._options] if self._options is not None else []
        return shlex.join(words)

    def _print_change(self, before: str, after: str, backup: Path | None) -> None:
        sys.stdout.write(files.diff(self.path, before, after))
        kept = f" What it had before is in {backup}." if backup else ""
        _print(f"\nWrote {self.path}.{kept}")

    def _print_note(self, program: programs.Program) -> None:
        if program.note:
            _print(f"\n{program.note}")


def _toolsets(entry: object) -> str:
    """Return the toolsets that the options in an entry choose."""
    try:
        values, _ = parse(merging.server_options_of(entry) or [], {})
    except OptionError:  # the entry was made by hand
        return value_of("toolsets", {})
    return values["toolsets"]


def _check(options: list[str], environ: Mapping[str, str]) -> None:
    """Check that a server starts with these options.

    Raises:
        CommandError: It does not.
    """
    try:
        checked(parse_all(options, {}), environ)
    except (OptionError, StartError) as error:
        raise CommandError(str(error)) from None


def _nix(arguments: argparse.Namespace, options: list[str]) -> int:
    if arguments.write or arguments.remove or options:
        raise CommandError("For Nix there are only lines to copy: tmux-debug config nix")
    _print(_NIX_LINES)
    sys.stdout.flush()
    return 0


def _divided(words: list[str]) -> tuple[list[str], list[str] | None]:
    """Return the words before `--` and those behind it, None if there is no `--`."""
    if "--" not in words:
        return words, None
    index = words.index("--")
    return words[:index], words[index + 1 :]


def _clients() -> str:
    return ", ".join((*CLIENTS, _NIX))


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
