"""The arguments of tools: declared as parameters, shown as JSON Schema, checked at each call.

The type of a parameter gives the type in the schema, `argument` its other keywords. A parameter
without a default is required::

    async def kill(
        engine: Engine,
        pane_id: Annotated[str, string("Pane id or name")],
        lines: Annotated[int, argument("How many lines", minimum=1)] = 100,
    ) -> Answer:

`string`, `short_name`, `whole` and `Variables` are for arguments that tools share.

An error says which argument is wrong, and what is wanted. No error contains a value that may be a
secret: none of `env`, and none at all of a call with `secret`.
"""

import importlib
import inspect
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import orjson

from tmux_debug_mcp.errors import ArgumentError, head

# Limits for the text of a pane that a tool returns, unless the tool sets others.
MAX_TEXT_CHARACTERS = 40_000
MAX_TEXT_LINES = 1000
# The longest name of a pane, a window or a session.
MAX_NAME_CHARACTERS = 64

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_MAX_VARIABLES = 256
# NUL and half surrogate pairs can't be typed, nor be in a file name or a variable.
_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")
_MAX_SHOWN_CHARACTERS = 60
# Time for the answer to tools/list to be sent.
_IDLE_S = 0.05
_TYPE_NAMES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
}


class Declaration(NamedTuple):
    """What the annotation of an argument says besides its type; see `argument`."""

    called: str | None
    value: str | None
    rules: Mapping[str, Any]


def argument(
    description: str | None = None,
    value: str | None = None,
    *,
    called: str | None = None,
    **rules: object,
) -> Declaration:
    """Declare an argument.

    `value` is what help calls its value, by default the parameter's name in upper case. `called` is
    its name in the schema, if that can't be the parameter's. `rules` are keywords of JSON Schema,
    in the schema's order.
    """
    if description is not None:
        rules["description"] = description
    return Declaration(called, value, rules)


def string(description: str, value: str | None = None) -> Declaration:
    """Declare text that is not empty."""
    return argument(description, value, minLength=1)


def short_name(description: str | None = None) -> Declaration:
    """Declare a name for a pane, a window or a session."""
    return argument(description, minLength=1, maxLength=MAX_NAME_CHARACTERS)


def whole(description: str, **rules: Any) -> Declaration:  # noqa: ANN401  as in JSON Schema
    """Declare a whole number that may be written as 3.0, as in specs 000 and 002."""
    return argument(description, type="number", multipleOf=1, **rules)


def is_secret(arguments: Mapping[str, Any]) -> bool:
    """Tell whether a call as sent has `secret`; a value of the wrong type counts as yes."""
    return not any(arguments.get("secret") is absent for absent in (None, False))


Directory = Annotated[str | None, string("Directory to start in", "DIR")]
Variables = Annotated[
    Mapping[str, str] | None,
    argument(
        "Environment variables to add",
        "NAME=VALUE",
        propertyNames={"pattern": "^[^=]+$"},
        maxProperties=_MAX_VARIABLES,
    ),
]


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a tool: its name in the schema, and its JSON Schema.

    Attributes:
        keyword: Its name in Python.
        value: What help calls its value.
        is_whole: It is an int, so 3.0 means 3.
    """

    name: str
    keyword: str
    value: str
    schema: Mapping[str, Any]
    is_required: bool
    is_whole: bool


def parameters_of(declaring: Callable[..., Any]) -> list[Parameter]:
    """Return the arguments that a handler or a dataclass declares.

    A handler's first parameter is what it works with. All others must be `Annotated`.
    """
    parameters = []
    skipped = 0 if inspect.isclass(declaring) else 1
    for parameter in [*inspect.signature(declaring).parameters.values()][skipped:]:
        hint, declared = get_args(parameter.annotation)
        if get_origin(hint) in (Union, UnionType):  # with None if it is optional
            others = [other for other in get_args(hint) if other is not NoneType]
            hint = others[0] if len(others) == 1 else hint
        rules = declared.rules
        parameters.append(
            Parameter(
                name=declared.called or parameter.name,
                keyword=parameter.name,
                value=declared.value or parameter.name.upper(),
                schema=rules if "anyOf" in rules else _type_schema(hint) | rules,
                is_required=parameter.default is parameter.empty,
                is_whole=hint is int,
            )
        )
    return parameters


def _type_schema(hint: Any) -> dict[str, Any]:  # noqa: ANN401  any type
    """Return the keywords that follow from a type."""
    origin = get_origin(hint)
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": {"type": "string"}}
    return {"type": _TYPES[hint]}


class ArgumentsParser:
    """Checks the arguments of a tool's calls. Its errors name the tool.

    Attributes:
        parameters: What the tool takes.
        schema: The JSON Schema of the arguments.
    """

    def __init__(self, tool: str, parameters: Sequence[Parameter]) -> None:
        self._tool = tool
        self.parameters = parameters
        properties = {parameter.name: parameter.schema for parameter in parameters}
        self.schema: dict[str, Any] = {"type": "object", "properties": properties}
        required = [parameter.name for parameter in parameters if parameter.is_required]
        if required:
            self.schema["required"] = required

    def parse(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that a client sent, by their names in Python.

        Null for an optional one means that it is not given.

        Raises:
            ArgumentError: One is missing, unknown, of the wrong type or out of range.
        """
        properties, required = self.schema["properties"], self.schema.get("required", [])
        given = {
            name: value for name, value in sent.items() if value is not None or name in required
        }
        for name in required:
            if name not in given:
                needed = " and ".join(required)
                raise ArgumentError(f"Parameter '{name}' is missing. {self._tool} needs {needed}.")
        for name, value in given.items():
            if name not in properties:
                takes = f"It takes {', '.join(properties)}" if properties else "It takes none"
                shown = head(name, _MAX_SHOWN_CHARACTERS)
                raise ArgumentError(f"{self._tool} has no parameter '{shown}'. {takes}.")
            if isinstance(value, float) and not math.isfinite(value):
                wanted = _wanted(properties[name])
                raise ArgumentError(f"Parameter '{name}' is {value}. It must be {wanted}.")
        _check_values(self.schema, given)
        for name, text in _strings(given):
            if _NO_CHARACTER.search(text):
                raise ArgumentError(
                    f"Parameter '{head(name, _MAX_SHOWN_CHARACTERS)}' contains a NUL character or "
                    "half a surrogate pair. Remove it."
                )
        return {
            parameter.keyword: int(given[parameter.name])
            if parameter.is_whole
            else given[parameter.name]
            for parameter in self.parameters
            if parameter.name in given
        }

    def takes(self, sent: Mapping[str, Any]) -> bool:
        """Tell whether the tool takes all these arguments, whatever their values."""
        return set(sent).issubset(self.schema["properties"])

    def known(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of the arguments sent that the tool takes and whose values it accepts."""
        import jsonschema  # noqa: PLC0415  as below

        properties = self.schema["properties"]
        return {
            name: value
            for name, value in sent.items()
            if name in properties
            and jsonschema.Draft202012Validator(properties[name]).is_valid(value)
        }


def import_validation_soon() -> None:
    """Import what checks values while nobody waits, in a thread. Call this before tools/list ends.

    It takes 35 ms or more, which else the first call would take longer.
    """
    if "jsonschema" not in sys.modules:
        timer = threading.Timer(_IDLE_S, importlib.import_module, ["jsonschema"])
        timer.daemon = True
        timer.start()


def _check_values(schema: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    import jsonschema  # noqa: PLC0415  as `import_validation_soon` explains

    validator = jsonschema.Draft202012Validator(schema)
    error = jsonschema.exceptions.best_match(validator.iter_errors(given))
    if error is None:
        return
    argument = error.absolute_path[0]
    path = head(".".join(map(str, error.absolute_path)), _MAX_SHOWN_CHARACTERS)
    value = error.instance
    if "propertyNames" in error.absolute_schema_path:
        name, equals, _ = value.partition("=")
        entry = _shown(f"{name}=…" if equals else name)
        raise ArgumentError(
            f"Parameter '{path}' has an entry {entry}, which can't be a variable's name."
        )
    # A value that may be a secret is in no error and on no record.
    may_be_secret = argument == "env" or is_secret(given)
    shown = f"{_type_of(value)}, not shown" if may_be_secret else _shown(value)
    # An error within `anyOf` knows only one alternative, so take the argument's whole schema.
    wanted = error.schema if error.parent is None else schema["properties"][argument]
    raise ArgumentError(f"Parameter '{path}' is {shown}. It must be {_wanted(wanted)}.")


def _wanted(schema: Mapping[str, Any]) -> str:
    """Return what a schema wants, in words: "a whole number of at least 1"."""
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(map(_wanted, schema["anyOf"]))
    type_name = "integer" if schema.get("multipleOf") == 1 else schema.get("type", "")
    text = _TYPE_NAMES.get(type_name, f"what fits {orjson.dumps(schema).decode()}")
    if "minimum" in schema:
        text += f" of at least {schema['minimum']}"
    if "maximum" in schema:
        text += f" and at most {schema['maximum']}"
    if "items" in schema:
        items = _wanted(schema["items"])
        text += f" of {schema.get('minItems', 0)} to {schema['maxItems']}, each {items}"
    if "maxLength" in schema:
        text += f" of {schema.get('minLength', 0)} to {schema['maxLength']} characters"
    elif schema.get("minLength"):
        text += " that is not empty"
    if "maxProperties" in schema:
        text += f" with at most {schema['maxProperties']} entries"
    if "additionalProperties" in schema:
        text += f" whose values are each {_wanted(schema['additionalProperties'])}"
    return text


def _type_of(value: object) -> str:
    names = {str: "a string", bool: "a boolean", list: "an array", dict: "an object"}
    return names.get(type(value), "a number")


def _shown(value: object) -> str:
    try:
        return head(orjson.dumps(value).decode(), _MAX_SHOWN_CHARACTERS)
    except TypeError:  # half a surrogate pair, or an integer beyond 64 bits
        return head(ascii(value), _MAX_SHOWN_CHARACTERS)


def _strings(given: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each string, and the keys of each object, with a name for it. Arrays are skipped."""
    for name, value in given.items():
        if isinstance(value, str):
            yield prefix + name, value
        elif isinstance(value, Mapping):
            yield name, "".join(value)
            yield from _strings(value, f"{name}.")
