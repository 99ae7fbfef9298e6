"""Write the fixtures of the specifications anew: the tools of each, as the documents have them.

    tests/specs/generate.py DIRECTORY

The directory has DESIGN.md and specs/ with the five documents. For each toolset, NAME.json gets a
list of tools: `name`, `parameters` (each with `type`, and `default` where there is one),
`required`, and `result`: the fields of a JSON object by name and type (and which of them must be
there), or tmux's variables in a line, or in words. A tool that is only planned has no parameters.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Entry = dict[str, Any]

_TYPES = {"str": "string", "bool": "boolean", "int": "integer", "float": "number"}


def main(directory: Path) -> None:
    """Write the fixtures beside this file."""
    design = (directory / "DESIGN.md").read_text()
    [terminally] = (directory / "specs").glob("000_*")
    [tmux] = (directory / "specs").glob("004_*")
    fixtures = {
        "debug": list(of_design(design, "2.1")),
        "tabs": list(of_terminally(terminally.read_text())),
        "terminal": list(of_design(design, "2.3")),
        "tmux": list(of_python(tmux.read_text())),
    }
    for name, tools in fixtures.items():
        Path(__file__).with_name(f"{name}.json").write_text(json.dumps(tools, indent=2) + "\n")


def of_terminally(text: str) -> Iterator[Entry]:
    """Yield the tools of spec 000, section 3.2, whose schemas are written as in JavaScript."""
    section = text[text.index("### 3.2") : text.index("## 4)")]
    for part in re.split(r"^(?:Optional )?Tool: ", section, flags=re.MULTILINE)[1:]:
        request = _javascript(part.partition("- request schema:")[2])
        response = _javascript(part.partition("- response schema:")[2])
        parameters = request["properties"]
        fields = response["properties"]
        yield {
            "name": part.split()[0],
            "parameters": {name: _parameter(schema) for name, schema in parameters.items()},
            "required": request["required"],
            "result": {
                "fields": {name: schema["type"] for name, schema in fields.items()},
                "required": response["required"],
            },
        }


def _javascript(text: str) -> Mapping[str, Any]:
    """Return the first object in a text, whose keys have no quotes."""
    start = text.index("{")
    end = _end_of_object(text, start)
    quoted = re.sub(r"([{,]\s*)(\w+):", r'\1"\2":', text[start:end])
    value: Mapping[str, Any] = json.loads(quoted)
    return value


def _end_of_object(text: str, start: int) -> int:
    """Return the offset behind the brace that closes the one at an offset."""
    depth = 0
    for offset, character in enumerate(text[start:], start):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        if depth == 0:
            return offset + 1
    raise ValueError(f"no brace closes the one at {start}")


def _parameter(schema: Mapping[str, Any]) -> Entry:
    """Return a parameter with the default that its description tells."""
    parameter: Entry = {"type": schema["type"]}
    default = re.search(r"\(?default (\w+)\)?", schema.get("description", ""))
    if default:
        parameter["default"] = _value(default[1])
    return parameter


def _value(word: str) -> bool | int | str:
    """Return the flag or the number that a word is, else the word."""
    if word in ("true", "false"):
        return word == "true"
    if word.isdigit():
        return int(word)
    return word


def of_design(text: str, section: str) -> Iterator[Entry]:
    """Yield the tools of a table of DESIGN.md. A row may have several of the same parameters."""
    for line in _section(text, section).splitlines():
        if not line.startswith("| `"):
            continue
        names, cell, result = (column.strip() for column in line.strip("|").split("|")[:3])
        parameters: dict[str, Entry] | None = None
        required: list[str] | None = None
        is_planned = not cell and "planned" in result
        if not is_planned:
            parameters, required = _parameters_of_cell(cell)
        for name in re.findall(r"`(\w+)`", names):
            yield {
                "name": name,
                "parameters": parameters,
                "required": required,
                "result": result,
            }


def _section(text: str, number: str) -> str:
    """Return a section of DESIGN.md, without those that follow."""
    begin = text[text.index(f"### {number}") :]
    return begin[: begin.index("\n### ", 1)]


def _parameters_of_cell(cell: str) -> tuple[dict[str, Entry], list[str]]:
    """Return the parameters that a cell lists, and the names of the required ones.

    Commas separate them, but not within parentheses. The required ones are bold. Explanations
    follow a colon.
    """
    parameters: dict[str, Entry] = {}
    required = []
    listed = cell.partition(":")[0]
    for item in re.split(r",\s*(?![^()]*\))", listed):
        name = re.search(r"[a-zA-Z_]+", item)
        if name is None:
            continue
        parameters[name[0]] = _default_of_item(item)
        if item.startswith("**"):
            required.append(name[0])
    return parameters, required


def _default_of_item(item: str) -> Entry:
    """Return the default that an item tells, as `word` (default) or as (true); {} for none."""
    word = re.search(r"`(\w+)` \(default\)", item)
    if word:
        return {"default": word[1]}
    flag = re.search(r"\((true|false)\)", item)
    if flag:
        return {"default": flag[1] == "true"}
    return {}


def of_python(text: str) -> Iterator[Entry]:
    """Yield the tools of spec 004: functions with a decorator, and a table of signatures."""
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        for node in ast.parse(block).body:
            if isinstance(node, ast.AsyncFunctionDef) and node.decorator_list:
                yield _tool(node, _formats(node))
    row = re.compile(r"^\| `(tmux_\w+)` \|[^|]*\| `\((.*?)\) -> str` \|", re.MULTILINE)
    for name, signature in row.findall(text):
        [function] = ast.parse(f"async def {name}({signature}): ...").body
        assert isinstance(function, ast.AsyncFunctionDef)
        yield _tool(function, [])


def _formats(function: ast.AsyncFunctionDef) -> list[str]:
    """Return tmux's variables in the format that a function has, none if it has no format."""
    source = ast.unparse(function).replace("'", '"')
    columns = re.search(r'fmt = "(.*)"', source)
    if columns is None:
        return []
    return re.findall(r"#\{(\w+)\}", columns[1])


def _tool(function: ast.AsyncFunctionDef, formats: Sequence[str]) -> Entry:
    """Return the tool that a function is. Arguments without a default are required."""
    arguments = function.args.args
    defaults = [ast.literal_eval(value) for value in function.args.defaults]
    required = arguments[: len(arguments) - len(defaults)]
    optional = arguments[len(required) :]
    parameters = {argument.arg: _typed(argument) for argument in arguments}
    for argument, default in zip(optional, defaults, strict=True):
        if default is not None:
            parameters[argument.arg]["default"] = default
    return {
        "name": function.name,
        "parameters": parameters,
        "required": [argument.arg for argument in required],
        "result": {"formats": formats},
    }


def _typed(argument: ast.arg) -> Entry:
    """Return an argument's type in JSON Schema; {} if it has no annotation."""
    if argument.annotation is None:
        return {}
    name, *_ = ast.unparse(argument.annotation).split(" ")  # "str | None" is a string
    return {"type": _TYPES[name]}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
