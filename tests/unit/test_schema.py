"""Declared parameters give the schema, the defaults and the checks of a tool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from tmux_debug_mcp.errors import ArgumentError
from tmux_debug_mcp.tools.arguments import ArgumentsParser, argument, parameters_of, string, whole


@dataclass(frozen=True)
class Everything:
    """Arguments of every kind."""

    target: Annotated[str, string("Where")]
    keys: Annotated[
        str | Sequence[str],
        argument(
            "What",
            anyOf=[
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 9},
            ],
        ),
    ]
    lines: Annotated[int, argument("How many", minimum=1)] = 100
    limit: Annotated[int, whole("At most")] = 5
    timeout_s: Annotated[float | None, argument(minimum=0)] = None
    is_shown: Annotated[bool, argument("Seen", called="isShown")] = False
    kind: Annotated[Literal["pane", "window"], argument("Kind", called="type")] = "pane"
    env: Annotated[Mapping[str, str] | None, argument("Variables")] = None


PARSER = ArgumentsParser("everything", parameters_of(Everything))


def parse(**given: Any) -> Everything:  # noqa: ANN401  as a client may send
    return Everything(**PARSER.parse({"target": "x", "keys": "y", **given}))


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


def test_names_of_the_schema_become_those_of_the_parameters() -> None:
    given = parse(isShown=True, type="window")

    assert (given.is_shown, given.kind) == (True, "window")


def test_whole_number_is_an_int_however_it_is_written() -> None:
    given = parse(lines=3.0, limit=4.0)

    assert [type(number) for number in (given.lines, given.limit)] == [int, int]
    assert (given.lines, given.limit) == (3, 4)


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


def test_long_name_of_a_variable_makes_no_long_error() -> None:
    with pytest.raises(ArgumentError, match=r"'env\.x+…' is a number, not shown"):
        parse(env={"x" * 5000: 1})
