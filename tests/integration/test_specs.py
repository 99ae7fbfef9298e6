"""The tools are those of the specifications, of which tests/specs has what `generate.py` found."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import in_process
from toolsets import Tabs, Terminal, Tmux

from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tools.toolset import TOOLSETS

SPECS = Path(__file__).parents[1] / "specs"
# What the specifications leave open, and is there besides.
ADDED_TOOLS = {"tabs": {"close_tab"}}


def spec(toolset: str) -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool for tool in json.loads((SPECS / f"{toolset}.json").read_text())}


@pytest.mark.parametrize("toolset", TOOLSETS)
async def test_tools_have_the_names_parameters_types_and_defaults_of_their_specification(
    settings: Settings, toolset: str
) -> None:
    wanted = spec(toolset)
    async with in_process(settings, toolsets=toolset) as tools:
        offered = {tool.name: tool for tool in (await tools.client.list_tools()).tools}

    assert set(offered) == set(wanted) | ADDED_TOOLS.get(toolset, set())
    for name, tool in wanted.items():
        schema = offered[name].input_schema
        assert schema["type"] == "object"
        if tool["parameters"] is None:
            continue
        assert set(schema["properties"]) == set(tool["parameters"]), name
        assert sorted(schema.get("required", [])) == sorted(tool["required"]), name
        for parameter, facts in tool["parameters"].items():
            offered_schema = schema["properties"][parameter]
            assert has_type(offered_schema, facts), (name, parameter)
            assert has_default(offered_schema, facts), (name, parameter)


def has_type(schema: dict[str, Any], facts: dict[str, Any]) -> bool:
    """Tell whether a parameter has the type of its specification, if that says any."""
    return "type" not in facts or schema["type"] == facts["type"]


def has_default(schema: dict[str, Any], facts: dict[str, Any]) -> bool:
    """Tell whether a parameter has the default of its specification, if that says any.

    That a flag is off unless given need not be told.
    """
    default = facts.get("default")
    if default is None or (default is False and schema["type"] == "boolean"):
        return True
    return tells_default(schema["description"], default)


def tells_default(description: str, default: object) -> bool:
    """Tell whether a description has a default."""
    shown = str(default).lower() if isinstance(default, bool) else str(default)
    return bool(re.search(rf"default:? {shown}\b|{shown},? [^()]*\(default\)", description))


async def test_results_of_tabs_have_the_fields_of_the_specification(tabs: Tabs) -> None:
    call = tabs.json
    results = {"create_tab": await call("create_tab", name="a b")}
    results["list_tabs"] = await call("list_tabs")
    results["execute_command"] = await call("execute_command", window_id="@1", command="echo x")
    results["read_logs_from_tab"] = await call("read_logs_from_tab", window_id="@1")
    results["stream_logs_from_tab"] = await call("stream_logs_from_tab", window_id="@1")
    results["start_process"] = await call("start_process", window_id="@1", command="sleep 99")
    results["stop_process"] = await call("stop_process", window_id="@1")
    results["set_history_limit"] = await call("set_history_limit", limit=5000)
    types = {"string": str, "number": int, "boolean": bool, "array": list}

    wanted = spec("tabs")
    assert set(results) == set(wanted)
    for name, tool in wanted.items():
        for field, kind in tool["result"]["fields"].items():
            assert type(results[name][field]) is types[kind], (name, field)
    [tab] = results["list_tabs"]["tabs"]
    assert (tab["window_id"], tab["name"], tab["active"]) == ("@1", "a b", True)


# What tmux's variables are in the results of the test below; a number, where nothing is said.
VALUES = {
    "session_id": r"\$\d+",
    "session_name": "work",
    "window_id": r"@\d+",
    "window_name": "w",
    "window_active": "[01]",
    "window_panes": r"\d panes",
    "pane_id": r"%\d+",
    "pane_active": "[01]",
    "pane_current_command": "cat",
    "pane_width": r"\d+x\d+",  # with the height in the same column
}
# The specification asks tmux for it, too, but does not show it.
LEFT_OUT = {("tmux_create_window", "session_id")}


def line_pattern(formats: list[str]) -> str:
    """Return a pattern for the line of a list with these variables as columns."""
    columns = [VALUES.get(name, r"\d+") for name in formats if name != "pane_height"]
    return "\t".join(columns)


async def test_results_of_tmux_have_the_columns_and_ids_of_the_specification(tmux: Tmux) -> None:
    made = {
        "tmux_create_session": await tmux.text(
            "create_session", name="work", window_name="w", command="exec cat"
        )
    }
    lists = {
        "tmux_list_windows": await tmux.text("list_windows"),
        "tmux_list_panes": await tmux.text("list_panes"),
    }
    made["tmux_create_window"] = await tmux.text("create_window", session="work")
    made["tmux_split_window"] = await tmux.text("split_window", target="work:w")

    wanted = spec("tmux")
    for name, text in lists.items():
        assert re.fullmatch(line_pattern(wanted[name]["result"]["formats"]), text), text
    for name, text in made.items():
        for field in wanted[name]["result"]["formats"]:
            is_shown = re.search(rf"{field}={VALUES.get(field, '[0-9]+')}\b", text)
            assert is_shown or (name, field) in LEFT_OUT, (name, field)
    assert made == {
        "tmux_create_session": ("Session 'work' created. session_id=$1 window_id=@1 pane_id=%1"),
        "tmux_create_window": (
            "Window created in session 'work'. window_id=@2 window_index=1 pane_id=%2"
        ),
        "tmux_split_window": "Pane created. pane_id=%3",
    }


async def test_results_of_terminal_are_those_of_its_table(term: Terminal) -> None:
    wanted = spec("terminal")
    answers = {
        "type": (await term.text("type", text="é!")).replace("2", "N"),
        "sendKey": (await term.text("sendKey", key="Enter")).replace("Enter", "K"),
        "clear": await term.text("clear"),
    }
    for name, answer in answers.items():
        assert wanted[name]["result"].startswith(f"`{answer}`"), name
    await term.text("createSession", name="silent", command="sleep 99")
    silence = await term.text("getContent", session="silent")
    assert f"`{silence}`" in wanted["getContent"]["result"]
    shot = await term.shot()
    assert set(shot) == {"content", "cursor", "dimensions"}
    assert set(shot["cursor"]) == {"x", "y"}
    assert shot["dimensions"] == {"cols": 120, "rows": 40}
