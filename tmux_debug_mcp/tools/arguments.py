"""Checks the arguments of calls, and makes them the class that a tool's handler gets.

An error says which argument is wrong, and what is wanted. No error has a value that may be a
secret.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import orjson

from tmux_debug_mcp.errors import ArgumentError

from .schema import parameters_of, schema_of

A = TypeVar("A")

# NUL, and half a surrogate pair: neither can be typed, nor stand in a file name or a variable.
_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")
_MAX_SHOWN_CHARACTERS = 60
_TYPE_NAMES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
}


class Parser(Generic[A]):
    """Checks the arguments of a tool's calls.

    Args:
        tool: The tool's name, for errors.
        wanted: The class of its arguments.
    """

    def __init__(self, tool: str, wanted: type[A]) -> None:
        self._tool = tool
        self._wanted = wanted
        self._parameters = parameters_of(wanted)
        self._schema = schema_of(self._parameters)

    def parse(self, arguments: Mapping[str, Any]) -> A:
        """Return the arguments of a call; null means not given where an argument is optional.

        Args:
            arguments: What the client sent.

        Raises:
            ArgumentError: One is missing, unknown, of the wrong type or out of range.
        """
        given = _checked(self._tool, self._schema, arguments)
        values = {}
        for parameter in self._parameters:
            if parameter.name in given:
                value = given[parameter.name]
                if parameter.is_whole and isinstance(value, float):
                    value = int(value)
                values[parameter.field] = value
        return self._wanted(**values)


def _checked(tool: str, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that were given, once they fit the schema.

    Raises:
        ArgumentError: They don't.
    """
    properties, required = schema["properties"], schema.get("required", [])
    given = {
        name: value for name, value in arguments.items() if value is not None or name in required
    }
    _check_names(tool, given, properties, required)
    for name, value in given.items():
        if isinstance(value, float) and not math.isfinite(value):
            wanted = _wanted(properties[name])
            raise ArgumentError(f"Parameter '{name}' is {value}. It must be {wanted}.")
    _check_values(schema, given)
    for name, text in _strings(given):
        if _NO_CHARACTER.search(text):
            raise ArgumentError(
                f"Parameter '{name}' has a NUL character or half a surrogate pair. Leave it out."
            )
    return given


def _check_names(
    tool: str,
    given: Collection[str],
    properties: Collection[str],
    required: Sequence[str],
) -> None:
    """Check that all required arguments are there, and no unknown one.

    Raises:
        ArgumentError: One is missing or unknown.
    """
    for name in required:
        if name not in given:
            needed = " and ".join(required)
            raise ArgumentError(f"Parameter '{name}' is missing. {tool} needs {needed}.")
    for name in given:
        if name not in properties:
            takes = f"It takes {', '.join(properties)}" if properties else "It takes none"
            raise ArgumentError(f"{tool} has no parameter '{_cut(name)}'. {takes}.")


def _check_values(schema: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Check the values by JSON Schema.

    Raises:
        ArgumentError: One is of the wrong type or out of range.
    """
    import jsonschema  # noqa: PLC0415  some 50 ms, which tools/list need not wait for

    validator = jsonschema.Draft202012Validator(schema)
    error = jsonschema.exceptions.best_match(validator.iter_errors(given))
    if error is None:
        return
    path = ".".join(str(step) for step in error.absolute_path)
    argument = path.partition(".")[0]
    value = error.instance
    if "propertyNames" in error.absolute_schema_path:
        raise ArgumentError(
            f"Parameter '{path}' has an entry {_shown(value)}, which can't be a name."
        )
    # A value that may be a secret is in no error and on no record.
    may_be_secret = argument == "env" or (given.get("secret") and argument == "keys")
    shown = f"{_type_of(value)}, not shown" if may_be_secret else _shown(value)
    # An error within `anyOf` knows one alternative only, so take the argument's whole schema.
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
        text += f" of {schema['minItems']} to {schema['maxItems']}, each {items}"
    if schema.get("minLength"):
        text += " that is not empty"
    if "maxLength" in schema:
        text += f" of at most {schema['maxLength']} characters"
    if "maxProperties" in schema:
        text += f" with at most {schema['maxProperties']} entries"
    if "additionalProperties" in schema:
        text += f" whose values are each {_wanted(schema['additionalProperties'])}"
    return text


def _type_of(value: object) -> str:
    names = {str: "a string", bool: "a boolean", list: "an array", dict: "an object"}
    return names.get(type(value), "a number")


def _shown(value: object) -> str:
    """Return a value as an error shows it."""
    try:
        return _cut(orjson.dumps(value).decode())
    except TypeError:  # half a surrogate pair, or an integer beyond 64 bits
        return _cut(ascii(value))


def _cut(text: str) -> str:
    if len(text) <= _MAX_SHOWN_CHARACTERS:
        return text
    return text[:_MAX_SHOWN_CHARACTERS] + "…"


def _strings(given: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each string among the values and in the keys of objects, with a name for it."""
    for name, value in given.items():
        if isinstance(value, str):
            yield prefix + name, value
        elif isinstance(value, Mapping):
            yield name, "".join(value)
            yield from _strings(value, f"{name}.")
