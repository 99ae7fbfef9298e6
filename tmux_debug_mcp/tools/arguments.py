"""Arguments that a call brings, checked and made into the class that the tool's handler gets.

Errors say which argument is wrong and what is wanted. A value that may be a secret is in no error.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Generic, TypeVar

import orjson

from tmux_debug_mcp.errors import ArgumentError
from tmux_debug_mcp.panes.creation import MAX_NAME_CHARACTERS

from .schema import Rules, parameters_of, schema_of

A = TypeVar("A")

# Arguments that tools have in common.
Text = Annotated[str, Rules(minLength=1)]
Name = Annotated[str, Rules(minLength=1, maxLength=MAX_NAME_CHARACTERS)]
Cwd = Annotated[str, Rules(minLength=1, description="Directory to start in")]
Env = Annotated[
    Mapping[str, str],
    Rules(
        propertyNames={"pattern": "^[^=]+$"},
        maxProperties=256,
        description="Environment variables to add",
    ),
]

_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")
_SHOWN_CHARACTERS = 60
_ARTICLES = {
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
    """Return the arguments that were given, once they fit the schema."""
    properties, required = schema["properties"], schema.get("required", [])
    given = {name: value for name, value in arguments.items() if value is not None or name in required}
    for name in required:
        if name not in given:
            raise ArgumentError(f"Parameter '{name}' is missing. {tool} needs {' and '.join(required)}.")
    for name in given:
        if name not in properties:
            takes = f"It takes {', '.join(properties)}" if properties else "It takes none"
            raise ArgumentError(f"{tool} has no parameter '{_cut(name)}'. {takes}.")
    for name, value in given.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ArgumentError(f"Parameter '{name}' is {value}. It must be {_wanted(properties[name])}.")
    _check_values(schema, given)
    for name, text in _strings(given):
        if _NO_CHARACTER.search(text):
            raise ArgumentError(f"Parameter '{name}' has a NUL character or half a surrogate pair. Leave it out.")
    return given


def _check_values(schema: Mapping[str, Any], given: dict[str, Any]) -> None:
    import jsonschema  # noqa: PLC0415  some 50 ms, which tools/list need not wait for

    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(given))
    if error is None:
        return
    name = ".".join(str(step) for step in error.absolute_path)
    if "propertyNames" in error.absolute_schema_path:
        raise ArgumentError(f"Parameter '{name}' has an entry {_shown(error.instance)}, which can't be a name.")
    # Values that may be secrets are neither told nor put on record.
    is_secret = name.startswith("env") or (given.get("secret") and name.partition(".")[0] == "keys")
    shown = f"{_type_of(error.instance)}, not shown" if is_secret else _shown(error.instance)
    schema_of_it = error.schema if error.parent is None else schema["properties"][name.partition(".")[0]]
    raise ArgumentError(f"Parameter '{name}' is {shown}. It must be {_wanted(schema_of_it)}.")


def _wanted(schema: Mapping[str, Any]) -> str:
    """Say in words what a value must be."""
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(map(_wanted, schema["anyOf"]))
    wanted = schema.get("type", "other")
    wanted = "integer" if schema.get("multipleOf") == 1 else wanted
    text = _ARTICLES.get(wanted, f"what fits {orjson.dumps(schema).decode()}")
    if "minimum" in schema:
        text += f" of at least {schema['minimum']}"
    if "maximum" in schema:
        text += f" and at most {schema['maximum']}"
    if "items" in schema:
        text += f" of {schema['minItems']} to {schema['maxItems']}, each {_wanted(schema['items'])}"
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
    try:
        return _cut(orjson.dumps(value).decode())
    except TypeError:  # half a surrogate pair, or a number beyond 64 bits
        return _cut(ascii(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _strings(given: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if isinstance(value, str):
            yield prefix + name, value
        elif isinstance(value, Mapping):
            yield name, "".join(value)
            yield from _strings(value, f"{name}.")
