"""The tool definitions cost every user context: committed snapshots, and budgets."""

import re
from pathlib import Path
from string import Formatter
from typing import Any

import orjson
import pytest

from tmux_debug_mcp.errors import (
    BusyError,
    CursorError,
    ElsewhereError,
    JobNotTakenError,
    LogLostError,
    NotAtPromptError,
    SentenceError,
    ShellNotReadyError,
    StartError,
    TargetNotFoundError,
    ToolError,
)
from tmux_debug_mcp.tools.toolset import TOOLSETS, Toolset, choose

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
MAX_BYTES = {"debug": 7000, "tabs": 5000, "terminal": 5000, "tmux": 8000}

_OF_RUNS = {
    BusyError,
    CursorError,
    ElsewhereError,
    JobNotTakenError,
    LogLostError,
    NotAtPromptError,
}
_OF_RUNS |= {ShellNotReadyError}
NEVER_RAISED: dict[str, set[type[ToolError]]] = {
    "debug": set(),
    "tabs": {CursorError, TargetNotFoundError},
    "terminal": {*_OF_RUNS, TargetNotFoundError},
    "tmux": _OF_RUNS,
}

over_toolsets = pytest.mark.parametrize(
    "toolset", [choose(name)[0] for name in TOOLSETS], ids=TOOLSETS
)


def definitions(toolset: Toolset[Any]) -> list[dict[str, Any]]:
    return [
        tool.definition().model_dump(by_alias=True, exclude_none=True) for tool in toolset.tools
    ]


def without_titles(toolset: Toolset[Any]) -> list[dict[str, Any]]:
    """Return the definitions without what clients show to people only."""
    shown = definitions(toolset)
    for definition in shown:
        assert definition.pop("title") == definition["annotations"].pop("title")
    return shown


def errors() -> set[type[SentenceError]]:
    """Return the classes of errors that have a sentence of their own."""
    return set(SentenceError.__subclasses__())


@over_toolsets
def test_definitions_are_the_snapshot(toolset: Toolset[Any]) -> None:
    """After a change that is meant, write the snapshots anew: see CONTRIBUTING.md."""
    snapshot = orjson.loads((SNAPSHOTS / f"{toolset.name}.json").read_bytes())

    assert orjson.dumps(snapshot) == orjson.dumps(definitions(toolset))


@over_toolsets
def test_definitions_and_instructions_are_within_their_budgets(toolset: Toolset[Any]) -> None:
    assert len(orjson.dumps(without_titles(toolset))) <= MAX_BYTES[toolset.name]
    assert len(toolset.instructions) <= 600


@over_toolsets
def test_titles_are_words_and_differ(toolset: Toolset[Any]) -> None:
    titles = [tool.title for tool in toolset.tools]

    assert len(set(titles)) == len(titles)
    assert all(re.fullmatch("[A-Z][a-z]*( [a-z]+)*", title) for title in titles)


@pytest.mark.parametrize(
    ("toolset", "title"),
    [
        ("debug", "Create pane"),
        ("tabs", "Read logs from tab"),
        ("terminal", "Take screenshot"),
        ("tmux", "Kill"),
    ],
)
def test_title_is_the_name_in_words(toolset: str, title: str) -> None:
    assert title in [tool.title for tool in choose(toolset)[0].tools]


@over_toolsets
def test_descriptions_are_within_what_clients_show(toolset: Toolset[Any]) -> None:
    assert all(len(tool.description) <= 1024 for tool in toolset.tools)


@over_toolsets
def test_schemas_are_flat_as_some_clients_need(toolset: Toolset[Any]) -> None:
    for tool in toolset.tools:
        schema = tool.definition().input_schema
        assert not {"anyOf", "oneOf", "allOf"} & set(schema)
        assert set(schema.get("required", [])) <= set(schema["properties"])


@over_toolsets
def test_errors_name_only_tools_of_the_toolset_that_was_called(toolset: Toolset[Any]) -> None:
    others = {tool.name for name in TOOLSETS for tool in choose(name)[0].tools} - {
        tool.name for tool in toolset.tools
    }
    others -= {"type", "clear", "resize"}  # which are words, too
    for error in errors() - NEVER_RAISED[toolset.name]:
        words = (
            toolset.words.fill(toolset.words.own.get(error, error.sentence))
            .replace(".", " ")
            .replace(",", " ")
            .split()
        )
        assert not others & set(words), error.__name__


@over_toolsets
def test_sentences_can_be_said_of_calls_without_arguments(toolset: Toolset[Any]) -> None:
    for error, sentence in toolset.words.own.items():
        named = {name for _, name, _, _ in Formatter().parse(sentence) if name}
        assert named <= {*error.__annotations__, "pane_id"}, error.__name__


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("debgu", "There is no toolset 'debgu'. Choose from debug, tabs, terminal, tmux."),
        ("", "No toolset is chosen. Choose from debug, tabs, terminal, tmux."),
        (" , ", "No toolset is chosen. Choose from debug, tabs, terminal, tmux."),
        (
            "debug,tabs,tmux",
            (
                "Toolsets 'debug' and 'tmux' both have a tool 'tmux_list_panes'. "
                "Choose one of the two."
            ),
        ),
    ],
)
def test_toolsets_that_can_not_be_chosen_are_errors(names: str, message: str) -> None:
    with pytest.raises(StartError) as raised:
        choose(names)
    assert str(raised.value) == message


def test_toolsets_are_in_the_order_that_was_asked_for_and_each_is_there_once() -> None:
    assert [toolset.name for toolset in choose("tabs, debug,tabs,")] == ["tabs", "debug"]


def test_names_and_required_parameters_are_those_of_the_specification() -> None:
    [debug] = choose("debug")
    schemas = {tool.name: tool.definition().input_schema for tool in debug.tools}
    assert {name: schema.get("required", []) for name, schema in schemas.items()} == {
        "tmux_create_pane": ["command"],
        "tmux_send_keys": ["pane_id", "keys"],
        "tmux_capture_pane": ["pane_id"],
        "tmux_run": ["command"],
        "tmux_wait": ["pane_id"],
        "tmux_kill_pane": ["pane_id"],
        "tmux_list_panes": [],
    }


if __name__ == "__main__":
    for name in TOOLSETS:
        [toolset] = choose(name)
        path = SNAPSHOTS / f"{name}.json"
        path.write_bytes(orjson.dumps(definitions(toolset), option=orjson.OPT_INDENT_2) + b"\n")
