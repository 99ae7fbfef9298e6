"""A subagent of Claude Code: a Markdown file with YAML in front, which starts the server itself.

The main session's context then contains one line about it, and no tools. We write the whole file,
and change it only if its front is as we write it; the prompt behind it may be a person's. No I/O
but reading our prompts.
"""

import json
import pathlib
import re

from tmux_debug_mcp.options import OptionError, parse, value_of

from .editing import Entry, Keys, UneditedError
from .programs import split, words_of
from .yaml_file import scalar

# What it starts outlives it for a while, so that others can use it.
OPTIONS = ("--keep", "30m")
# Nix has its own copies of these in lib/mcp/tmux: without --keep, and with it.
_DESCRIPTION = "Debugs a running program in terminals. Give it the symptom and a start command. {}"
_ENDS = "What it starts ends with it."
_KEPT = "What it leaves running ends {} after its last use."
_PROMPT_ENDS = (
    "What you start ends with you: don't tell anybody to use it. If you find what you did not "
    "start, another subagent shares your server, and all ends when one of you does: report that "
    "each needs a name of its own.\n"
)
_PROMPT_KEPT = (
    "What you leave running goes on, and ends {} after its last use: say what runs where, and how "
    "to end it (`tmux-debug kill NAME`). What runs without your doing is another's: leave it.\n"
)
_FRONT = """\
---
name: {name}
description: "{description}"
tools: Bash, Read, Grep, Glob
mcpServers:
  - {name}:
      type: stdio
      command: {command}
      args: {arguments}
---
"""
_ENTRY = re.compile(r"^  - (.+):\n.*\n      command: (.*)\n      args: (.*)\n", re.MULTILINE)
_REASON = (
    "is not a subagent as config writes it. Choose another name with --name, or replace the file"
)
# The first prompt names tools of the toolset debug.
_PROMPT, _PROMPT_OF_OTHERS = (
    pathlib.Path(__file__).with_name(name) for name in ("subagent.md", "subagent-other.md")
)


def load(text: str) -> Entry:
    """Return the server of a file that we have written, {} for an empty file."""
    if not text.strip():
        return {}
    found = _ENTRY.search(text)
    if found:
        try:
            command, arguments = json.loads(found[2]), json.loads(found[3])
        except (ValueError, RecursionError) as error:
            raise UneditedError(_REASON) from error
        entry = {"type": "stdio", "command": command, "args": arguments}
        if text.startswith(_front(found[1], entry)):
            return {"mcpServers": {found[1]: entry}}
    raise UneditedError(_REASON)


def put(text: str, keys: Keys, value: Entry) -> str:
    """Return a new file for an entry, or the file with another value of a key in its entry."""
    name = keys[1]
    if not text.strip():
        return _front(name, value) + _prompt(value)
    old = load(text)["mcpServers"][name]
    new = {**old, keys[-1]: value}
    prompt = text.removeprefix(_front(name, old))
    return _front(name, new) + (_prompt(new) if prompt == _prompt(old) else prompt)


def remove(_: str, __: Keys, ___: Entry) -> str:
    """Return an empty text: the file is nothing without its server."""
    return ""


def _front(name: str, entry: Entry) -> str:
    keep = _option(entry, "keep")
    return _FRONT.format(
        name=name,
        description=_DESCRIPTION.format(_KEPT.format(keep) if keep else _ENDS),
        command=scalar(entry["command"]),
        arguments=scalar(entry["args"]),
    )


def _prompt(entry: Entry) -> str:
    """Return the prompt for the toolsets that an entry's options choose, and what ends when."""
    toolsets, keep = _option(entry, "toolsets"), _option(entry, "keep")
    has_debug = "debug" in (toolset.strip() for toolset in toolsets.split(","))
    prompt = (_PROMPT if has_debug else _PROMPT_OF_OTHERS).read_text()
    return prompt + (_PROMPT_KEPT.format(keep) if keep else _PROMPT_ENDS)


def _option(entry: Entry, name: str) -> str:
    """Return what an entry's options give for the option of this name, or its default."""
    parts = split(words_of(entry))
    try:
        return str(parse(parts[1] if parts else [], {})[0][name])
    except OptionError:  # the entry was made by hand
        return str(value_of(name, {}))
