"""The tool definitions cost every user context: a committed snapshot, and a budget."""

from pathlib import Path

import orjson

from tmux_debug_mcp.tools import debug

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "debug.json"
MAX_BYTES = 6000


def definitions() -> list[dict[str, object]]:
    return [tool.definition().model_dump(by_alias=True, exclude_unset=True) for tool in debug.TOOLS]


def test_definitions_are_the_snapshot() -> None:
    """After a change that is meant, write the snapshot anew: see CONTRIBUTING.md."""
    assert definitions() == orjson.loads(SNAPSHOT.read_bytes())


def test_definitions_and_instructions_are_within_their_budgets() -> None:
    assert len(orjson.dumps(definitions())) <= MAX_BYTES
    assert len(debug.INSTRUCTIONS) <= 600


def test_descriptions_are_within_what_clients_show() -> None:
    assert all(len(tool.description) <= 1024 for tool in debug.TOOLS)


def test_schemas_are_flat_as_some_clients_need() -> None:
    for tool in debug.TOOLS:
        assert not {"anyOf", "oneOf", "allOf"} & set(tool.input_schema)
        assert set(tool.required) <= set(tool.parameters)


def test_names_and_required_parameters_are_those_of_the_specification() -> None:
    assert {tool.name: list(tool.required) for tool in debug.TOOLS} == {
        "tmux_create_pane": ["command"],
        "tmux_send_keys": ["pane_id", "keys"],
        "tmux_capture_pane": ["pane_id"],
        "tmux_run": ["command"],
        "tmux_wait": ["pane_id"],
        "tmux_kill_pane": ["pane_id"],
        "tmux_list_panes": [],
    }


if __name__ == "__main__":
    SNAPSHOT.write_bytes(orjson.dumps(definitions(), option=orjson.OPT_INDENT_2) + b"\n")
