"""A subagent of Claude Code: a Markdown file with YAML in front, which starts the server itself.

The main session then has one line of it in its context, and no tools.
"""

import pathlib
from collections.abc import Iterator

from . import yaml_text
from .formats import BOM, FormatError, Path

_FENCE = "---"
# lib/mcp/tmux has the same for Nix.
_DESCRIPTION = "Debugs a running program in terminals. Tell it the symptom and how to start it."
_TOOLS = "Bash, Read, Grep, Glob"
# The first names tools of the toolset debug.
_PROMPT, _PROMPT_OF_OTHERS = (
    pathlib.Path(__file__).with_name(name) for name in ("subagent.md", "subagent-other.md")
)


def text_of(name: str, entry: dict[str, object], toolsets: str) -> str:
    """Return the file of a subagent that is called like its server, which this entry starts.

    The server offers these toolsets, separated by commas.
    """
    front = [
        *yaml_text.dump({"name": name, "description": _DESCRIPTION}).splitlines(),
        f"tools: {_TOOLS}",
        "mcpServers:",
        f"  - {name}:",
        *(f"      {line}" for line in yaml_text.dump(entry).splitlines()),
    ]
    return "\n".join([_FENCE, *front, _FENCE, _prompt_for(toolsets)])


def with_prompt_for(text: str, before: str, toolsets: str) -> str:
    """Return a file with the prompt for these toolsets, unless a person has changed the prompt.

    `before` are the toolsets that its prompt is for.
    """
    own = _prompt_for(before)
    return text.removesuffix(own) + _prompt_for(toolsets) if text.endswith(own) else text


def load(text: str) -> object:
    """Return the value of the YAML in front, {} if there is none.

    Raises:
        FormatError: It is no YAML.
    """
    start, end = _front(text)
    return yaml_text.load(text[start:end])


def put(text: str, path: Path, value: object) -> Iterator[str]:
    """Yield texts with this value at a path in the YAML in front."""
    start, end = _front(text)
    for front in yaml_text.put(text[start:end], path, value):
        yield text[:start] + front + text[end:]


def remove(text: str, path: Path) -> Iterator[str]:  # noqa: ARG001
    """Yield what a file of ours is without its server: nothing."""
    yield ""


def _prompt_for(toolsets: str) -> str:
    has_debug = "debug" in (toolset.strip() for toolset in toolsets.split(","))
    return (_PROMPT if has_debug else _PROMPT_OF_OTHERS).read_text()


def _front(text: str) -> tuple[int, int]:
    """Return where the YAML in front begins and ends.

    Raises:
        FormatError: It has no end.
    """
    start = text.find("\n") + 1
    if text[:start].strip(f"{BOM} \t\r\n") != _FENCE:
        return 0, 0
    end = text.find(f"\n{_FENCE}", start - 1) + 1
    if not end:
        raise FormatError("has front matter without an end", 1, 1)
    return start, end
