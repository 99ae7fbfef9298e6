"""Every error of a call, in the words of the tools of `debug` and in those of the verbs.

`tests/snapshots/errors.txt` is the table, for people to read. Facts stand in braces.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tmux_debug_mcp import audit, errors
from tmux_debug_mcp.tools.arguments import ArgumentsParser, parameters_of
from tmux_debug_mcp.tools.debug_arguments import KillPane
from tmux_debug_mcp.verbs.registry import TOOLS, VERBS
from tmux_debug_mcp.verbs.requests import Request, in_verbs
from tmux_debug_mcp.verbs.words import parameters_of_tool

TABLE = Path(__file__).parents[1] / "snapshots" / "errors.txt"
PACKAGE = Path(errors.__file__).parent
# Rooms and modules with errors of other toolsets, or of the options of a server.
OTHERS = {"tools/sessions.py", "tools/users_tabs.py", "tmux/users_server.py", "panes/recording.py"}
ROOMS = (
    "audit.py",
    "vt/**/*.py",
    "tmux/*.py",
    "logs/*.py",
    "panes/**/*.py",
    "tools/*.py",
    "verbs/*.py",
)

# What a shell has no word for. A sentence may speak of literal characters.
TOOL_WORDS = re.compile(
    r"tmux_\w+|[Pp]arameters? '|\w+_id\b|\w+_s\b|wait_for|stop_pattern|an array|the user\b"
    r"|(?<!-)literal(?! characters)"
)
# Nobody whom a verb serves can get these.
NOT_OF_VERBS = {"KillNotAllowedError"}


def sentences() -> Iterator[tuple[str, str]]:
    """Yield the sentences of the classes, then those that are raised with a text of their own."""
    classes = {
        name: errors.DEBUG.fill(one.sentence)
        for name, one in {**vars(errors), **vars(audit)}.items()
        if isinstance(one, type) and issubclass(one, errors.ToolError)
    }
    yield from ((name, sentence) for name, sentence in classes.items() if sentence)
    without = {name for name, sentence in classes.items() if not sentence}
    paths = {path for room in ROOMS for path in PACKAGE.glob(room)}
    for path in paths - {PACKAGE / other for other in OTHERS}:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name(id=name), args=[ast.JoinedStr() | ast.Constant() as text]
                ):
                    yield from [(name, template(text))] if name in without else []


def template(text: ast.expr) -> str:
    """Return a text with what is computed in braces."""
    match text:
        case ast.JoinedStr(values=parts):
            return "".join(map(template, parts))
        case ast.FormattedValue(value=value):
            return f"{{{ast.unparse(value)}}}"
        case ast.Constant(value=value):
            return str(value)
    raise AssertionError(ast.dump(text))


def with_examples(sentence: str) -> str:
    """Return a sentence with an example for what decides its wording."""
    sentence = re.sub(r"([Pp]arameter )'{.*?}'", r"\1'wait_for'", sentence)
    return sentence.replace("{steps}", '["Escape", ":wq Enter"]').replace("{pane_id}", "{pane}")


def in_a_shell(sentence: str) -> str:
    """Return what the first verb prints that has all the parameters."""
    named = set(re.findall(r"[Pp]arameter '(\w+)", sentence))
    those = (one for one in TOOLS if named <= {it.name for it in parameters_of_tool(one)})
    verb = next(those, TOOLS[0])
    return in_verbs(sentence, Request(verb, verb.tool, {"pane_id": "vim"}))


def rows() -> list[tuple[str, str, str]]:
    """Return the name of each error, its sentence for a model, and the one for a shell."""
    told = sorted({(name, with_examples(sentence)) for name, sentence in sentences()})
    return [(name, sentence, in_a_shell(sentence)) for name, sentence in told]


def table() -> str:
    return "\n".join(
        f"{name}\n  {sentence}\n" + (f"  {shell}\n" if shell != sentence else "")
        for name, sentence, shell in rows()
    )


def test_table_has_every_error_in_both_wordings() -> None:
    """After a change that is meant, write the table anew: see CONTRIBUTING.md."""
    assert TABLE.read_text() == table()


def test_every_error_is_told_in_words_of_the_shell() -> None:
    told = [re.sub("{.*?}", "", shell) for name, _, shell in rows() if name not in NOT_OF_VERBS]

    assert len(told) > 80
    assert [one for one in told if TOOL_WORDS.search(one)] == []


def test_what_would_be_an_array_is_words() -> None:
    parser = ArgumentsParser("tmux_kill_pane", parameters_of(KillPane))
    with pytest.raises(errors.ArgumentError) as refused:
        parser.parse({"pane_id": ["web"] * 65})

    told = in_verbs(str(refused.value), Request(VERBS["kill"], "tmux_kill_pane"))
    assert told.startswith('PANE is ["web",')
    assert told.endswith(" It must be 1 to 64 words.")


if __name__ == "__main__":
    TABLE.write_text(table())
