"""A subagent of Claude Code: a Markdown file with YAML in front, which starts the server itself.

The main session's context then contains one line about it, and no tools.
"""

import pathlib
from collections.abc import Iterator

from tmux_debug_mcp.options import OptionError, parse, value_of

from . import yaml_text
from .formats import BOM, FormatError, Path
from .merging import server_options_of

_FENCE = "---"
# Nix has its own copy of this in lib/mcp/tmux.
_DESCRIPTION = "Debugs a running program in terminals. Give it the symptom and a start command."
_TOOLS = "Bash, Read, Grep, Glob"
# The first prompt names tools of the toolset debug.
_PROMPT, _PROMPT_OF_OTHERS = (
    pathlib.Path(__file__).with_name(name) for name in ("subagent.md", "subagent-other.md")
)


def with_prompt(text: str, before: object, after: object) -> str:
    """Return a file with the prompt for its new entry, unless a person changed the old prompt."""
    own = _prompt_for(before)
    return text.removesuffix(own) + _prompt_for(after) if text.endswith(own) else text


def load(text: str) -> object:
    """Return the value of the YAML in front, {} if there is none."""
    start, end = _front(text)
    return yaml_text.load(text[start:end])


def put(text: str, path: Path, value: object) -> Iterator[str]:
    """Yield texts with this value at a path in the YAML in front.

    An empty text becomes a subagent with the name of its server, which the value starts.
    """
    if not text.strip() and isinstance(value, dict):
        name = path[-1]
        lines = [
            *yaml_text.dump({"name": name, "description": _DESCRIPTION}).splitlines(),
            f"tools: {_TOOLS}",
            "mcpServers:",
            f"  - {name}:",
            *(f"      {line}" for line in yaml_text.dump(value).splitlines()),
        ]
        yield "\n".join([_FENCE, *lines, _FENCE, _prompt_for(value)])
        return
    start, end = _front(text)
    for front in yaml_text.put(text[start:end], path, value):
        yield text[:start] + front + text[end:]


def remove(text: str, path: Path) -> Iterator[str]:  # noqa: ARG001
    """Yield an empty text: a file of ours is nothing without its server."""
    yield ""


def _prompt_for(entry: object) -> str:
    """Return the prompt for the toolsets that an entry's options choose."""
    try:
        toolsets = parse(server_options_of(entry) or [], {})[0]["toolsets"]
    except OptionError:  # the entry was made by hand
        toolsets = value_of("toolsets", {})
    has_debug = "debug" in (toolset.strip() for toolset in toolsets.split(","))
    return (_PROMPT if has_debug else _PROMPT_OF_OTHERS).read_text()


def _front(text: str) -> tuple[int, int]:
    """Return where the YAML in front begins and ends."""
    start = text.find("\n") + 1
    if text[:start].strip(f"{BOM} \t\r\n") != _FENCE:
        return 0, 0
    end = text.find(f"\n{_FENCE}", start - 1) + 1
    if not end:
        raise FormatError("has unterminated front matter", 1, 1)
    return start, end
