"""The JSON Schema of a tool's arguments, made from the frozen class that its handler gets.

The type of a field gives the type in the schema, `argument` its other keywords. A field without a
default is required::

    @arguments
    class Kill:
        pane_id: str = string("Pane id or name")
        lines: int = argument("How many lines", default=100, minimum=1)

`string`, `short_name`, `whole` and `variables` are for arguments that tools have in common.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from tmux_debug_mcp.panes.creation import MAX_NAME_CHARACTERS

C = TypeVar("C")

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_MAX_VARIABLES = 256


def argument(
    description: str | None = None,
    *,
    default: Any = MISSING,  # noqa: ANN401  of the field's type
    called: str | None = None,
    **rules: Any,  # noqa: ANN401  what JSON Schema has
) -> Any:  # noqa: ANN401
    """Declare an argument.

    Args:
        description: What the model reads of it.
        default: Its value when a call leaves it out; without one it is required.
        called: Its name in the schema, where that can't be the field's.
        rules: Keywords of JSON Schema, in the order in which the schema has them.
    """
    if description is not None:
        rules["description"] = description
    return field(default=default, metadata={"called": called, "rules": rules})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(argument,))
def arguments(declared: type[C]) -> type[C]:
    """Make a class of declared arguments a frozen dataclass."""
    return dataclass(frozen=True, slots=True, kw_only=True)(declared)


def string(description: str, **options: Any) -> Any:  # noqa: ANN401  as `argument`
    """Declare text that is not empty."""
    return argument(description, minLength=1, **options)


def short_name(description: str | None = None, **options: Any) -> Any:  # noqa: ANN401
    """Declare a name for a pane, a window or a session."""
    return argument(description, minLength=1, maxLength=MAX_NAME_CHARACTERS, **options)


def whole(description: str, **options: Any) -> Any:  # noqa: ANN401
    """Declare a whole number that may be written as 3.0, as specs 000 and 002 have it."""
    return argument(description, type="number", multipleOf=1, **options)


def variables() -> Any:  # noqa: ANN401
    """Declare environment variables to add."""
    return argument(
        "Environment variables to add",
        default=None,
        propertyNames={"pattern": "^[^=]+$"},
        maxProperties=_MAX_VARIABLES,
    )


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a tool.

    Attributes:
        name: Its name in the schema.
        field: The name of its field in the class.
        schema: Its JSON Schema.
        is_required: A call must give it.
        is_whole: It is an int, so that 3.0 means 3.
    """

    name: str
    field: str
    schema: Mapping[str, Any]
    is_required: bool
    is_whole: bool


def parameters_of(declared: type) -> list[Parameter]:
    """Return the parameters that a class of arguments declares."""
    hints = get_type_hints(declared)
    return [_parameter(one, hints[one.name]) for one in fields(declared)]


def schema_of(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    properties = {one.name: one.schema for one in parameters}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [one.name for one in parameters if one.is_required]
    if required:
        schema["required"] = required
    return schema


def _parameter(declared: Field[Any], hint: Any) -> Parameter:  # noqa: ANN401  any type
    rules = declared.metadata["rules"]
    hint = _without_none(hint)
    schema = rules if "anyOf" in rules else _type_schema(hint) | rules
    return Parameter(
        name=declared.metadata["called"] or declared.name,
        field=declared.name,
        schema=schema,
        is_required=declared.default is MISSING,
        is_whole=hint is int,
    )


def _without_none(hint: Any) -> Any:  # noqa: ANN401
    """Return the type of an optional argument that is given."""
    if get_origin(hint) in (Union, UnionType):
        others = [one for one in get_args(hint) if one is not NoneType]
        if len(others) == 1:
            return others[0]
    return hint


def _type_schema(hint: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the keywords that follow from a type."""
    origin = get_origin(hint)
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": {"type": "string"}}
    return {"type": _TYPES[hint]}
