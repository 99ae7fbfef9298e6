"""The JSON Schema of a tool's arguments, made from the frozen class that its handler gets.

A field's type gives the type in the schema, `Rules` in its annotation the other keywords. A field
without a default is required::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Kill:
        pane_id: Annotated[str, Rules(minLength=1, description="Pane id or name")]
        visible_only: Annotated[bool, Named("visibleOnly")] = False
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


class Rules:
    """Keywords of JSON Schema for an argument, in the order in which the schema has them."""

    def __init__(self, **keywords: Any) -> None:  # noqa: ANN401  what JSON Schema has
        self.keywords = keywords


class Named(str):
    """The name of an argument that can't be a name in Python, or would hide one."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool.

    Attributes:
        name: Its name in the schema.
        field: The name of its field in the class.
        schema: Its JSON Schema.
        is_required: It must be given.
        is_whole: It is an int, so that 3.0 means 3.
    """

    name: str
    field: str
    schema: Mapping[str, Any]
    is_required: bool
    is_whole: bool


def parameters_of(arguments: type) -> list[Parameter]:
    """Return the parameters that a class of arguments declares."""
    hints = get_type_hints(arguments, include_extras=True)
    return [_parameter(field, hints[field.name]) for field in fields(arguments)]


def schema_of(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    properties = {one.name: one.schema for one in parameters}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [one.name for one in parameters if one.is_required]
    if required:
        schema["required"] = required
    return schema


def _parameter(field: Field[Any], hint: Any) -> Parameter:  # noqa: ANN401  of any type
    names = [item for item in _annotations(hint) if isinstance(item, Named)]
    return Parameter(
        name=str(names[0]) if names else field.name,
        field=field.name,
        schema=_schema(hint),
        is_required=field.default is MISSING and field.default_factory is MISSING,
        is_whole=any(_bare(one) is int for one in _alternatives(_bare(hint))),
    )


def _schema(hint: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the schema of an annotation."""
    schema = _schema_of_type(_bare(hint))
    for item in _annotations(hint):
        if isinstance(item, Rules):
            schema |= item.keywords
    return schema


def _schema_of_type(hint: Any) -> dict[str, Any]:  # noqa: ANN401
    alternatives = _alternatives(hint)
    if len(alternatives) > 1:
        return {"anyOf": [_schema(one) for one in alternatives]}
    [one] = alternatives
    if one is not hint:
        return _schema(one)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(arguments[1])}
    if origin is not None and issubclass(origin, Sequence):
        return {"type": "array", "items": _schema(arguments[0])}
    return {"type": _TYPES[hint]}


def _alternatives(hint: Any) -> list[Any]:  # noqa: ANN401
    """Return the members of a union but None, or else the type itself."""
    if get_origin(hint) in (Union, UnionType):
        return [one for one in get_args(hint) if one is not NoneType]
    return [hint]


def _bare(hint: Any) -> Any:  # noqa: ANN401
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _annotations(hint: Any) -> Sequence[Any]:  # noqa: ANN401
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()
