"""A class of declared arguments gives the schema, the defaults and the checks of a tool."""

from collections.abc import Mapping, Sequence
from dataclasses import FrozenInstanceError
from typing import Any, Literal

import pytest

from tmux_debug_mcp.errors import ArgumentError
from tmux_debug_mcp.tools.arguments import (
    Parser,
    argument,
    arguments,
    string,
    whole,
)


@arguments
class Everything:
    """Arguments of every kind."""

    target: str = string("Where")
    keys: str | Sequence[str] = argument(
        "What",
        anyOf=[
            {"type": "string"},
            {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 9},
        ],
    )
    lines: int = argument("How many", default=100, minimum=1)
    limit: int = whole("At most", default=5)
    timeout_s: float | None = argument(default=None, minimum=0)
    is_shown: bool = argument("Seen", called="isShown", default=False)
    kind: Literal["pane", "window"] = argument("Kind", called="type", default="pane")
    env: Mapping[str, str] | None = argument("Variables", default=None)


PARSER = Parser("everything", Everything)


def parse(**given: Any) -> Everything:  # noqa: ANN401  as a client may send
    return PARSER.parse({"target": "x", "keys": "y", **given})


def test_schema_follows_from_types_and_rules_in_their_order() -> None:
    schema = PARSER.schema

    assert list(schema["properties"]) == [
        *("target", "keys", "lines", "limit", "timeout_s", "isShown", "type", "env")
    ]
    assert schema["required"] == ["target", "keys"]
    properties = {name: list(one.items()) for name, one in schema["properties"].items()}
    assert properties["target"] == [("type", "string"), ("minLength", 1), ("description", "Where")]
    assert properties["lines"] == [
        *(("type", "integer"), ("minimum", 1), ("description", "How many"))
    ]
    assert properties["limit"][:2] == [("type", "number"), ("multipleOf", 1)]
    assert properties["timeout_s"] == [("type", "number"), ("minimum", 0)]
    assert properties["type"][:2] == [("type", "string"), ("enum", ["pane", "window"])]
    assert properties["env"][:2] == [
        *(("type", "object"), ("additionalProperties", {"type": "string"}))
    ]
    assert [name for name, _ in properties["keys"]] == ["anyOf", "description"]


def test_arguments_that_are_left_out_or_null_have_their_defaults() -> None:
    given = parse(lines=None, type=None, timeout_s=None)

    assert (given.lines, given.limit, given.timeout_s) == (100, 5, None)
    assert (given.is_shown, given.kind, given.env) == (False, "pane", None)


def test_names_of_the_schema_become_those_of_the_fields() -> None:
    given = parse(isShown=True, type="window")

    assert (given.is_shown, given.kind) == (True, "window")


def test_whole_number_is_an_int_however_it_is_written() -> None:
    given = parse(lines=3.0, limit=4.0)

    assert [type(number) for number in (given.lines, given.limit)] == [int, int]
    assert (given.lines, given.limit) == (3, 4)


def test_arguments_can_not_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        parse().lines = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"target": None}, "Parameter 'target' is null. It must be a string that is not empty."),
        ({"lines": 0}, "Parameter 'lines' is 0. It must be a whole number of at least 1."),
        ({"limit": 1.5}, "Parameter 'limit' is 1.5. It must be a whole number."),
        ({"type": "tab"}, "Parameter 'type' is \"tab\". It must be one of pane, window."),
        (
            {"keys": []},
            "Parameter 'keys' is []. It must be a string or an array of 1 to 9, each a string.",
        ),
        ({"is_shown": True}, "everything has no parameter 'is_shown'. It takes target, keys, "),
        ({"env": {"A": 1}}, "Parameter 'env.A' is a number, not shown. It must be a string."),
    ],
)
def test_errors_say_what_is_wrong_and_what_is_wanted(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        parse(**given)

    assert str(raised.value).startswith(sentence)
