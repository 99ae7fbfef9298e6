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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Entry = dict[str, Any]

_TYPES = {"str": "string", "bool": "boolean", "int": "integer", "float": "number"}


def main(directory: Path) -> None:
    """Write the fixtures beside this file."""
    documents = [
        next((directory / "specs").glob(f"{number:03d}_*")).read_text() for number in range(5)
    ]
    design = (directory / "DESIGN.md").read_text()
    fixtures = {
        "debug": list(of_design(design, "2.1")),
        "tabs": list(of_terminally(documents[0])),
        "terminal": list(of_design(design, "2.3")),
        "tmux": list(of_python(documents[4])),
    }
    for name, tools in fixtures.items():
        Path(__file__).with_name(f"{name}.json").write_text(json.dumps(tools, indent=2) + "\n")


def of_terminally(text: str) -> Iterator[Entry]:
    """Yield the tools of spec 000, section 3.2, whose schemas are written as in JavaScript."""
    section = text[text.index("### 3.2") : text.index("## 4)")]
    for part in re.split(r"^(?:Optional )?Tool: ", section, flags=re.MULTILINE)[1:]:
        name = part.split()[0]
        request, response = (
            _javascript(part.partition(f"- {kind} schema:")[2]) for kind in ("request", "response")
        )
        yield {
            "name": name,
            "parameters": {key: _parameter(value) for key, value in request["properties"].items()},
            "required": request["required"],
            "result": {
                "fields": {key: value["type"] for key, value in response["properties"].items()},
                "required": response["required"],
            },
        }


def _javascript(text: str) -> Mapping[str, Any]:
    """Return the object that a text begins with."""
    start = text.index("{")
    depth = 0
    for end in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if not depth:
            break
    quoted = re.sub(r"([{,]\s*)(\w+):", r'\1"\2":', text[start : end + 1])
    value: Mapping[str, Any] = json.loads(quoted)
    return value


def _parameter(schema: Mapping[str, Any]) -> Entry:
    parameter: Entry = {"type": schema["type"]}
    if found := re.search(r"\(?default (\w+)\)?", schema.get("description", "")):
        parameter["default"] = (
            json.loads(found[1])
            if found[1] in ("true", "false") or found[1].isdigit()
            else found[1]
        )
    return parameter


def of_design(text: str, section: str) -> Iterator[Entry]:
    """Yield the tools of a table of DESIGN.md: names, and parameters, the required ones in bold."""
    part = text[text.index(f"### {section}") :]
    part = part[: part.index("\n### ", 1)]
    for line in part.splitlines():
        if not line.startswith("| `"):
            continue
        names, cell, result = (cell.strip() for cell in line.strip("|").split("|")[:3])
        known: dict[str, Entry] = {}
        required = []
        for item in re.split(r",\s*(?![^()]*\))", cell.partition(":")[0]):
            if name := re.search(r"[a-zA-Z_]+", item):
                default = re.search(r"`(\w+)` \(default\)|\((true|false)\)", item)
                known[name[0]] = (
                    {"default": default[1] or json.loads(default[2])} if default else {}
                )
                required += [name[0]] if item.startswith("**") else []
        for name in re.findall(r"`(\w+)`", names):
            planned = not cell and "planned" in result
            parameters = None if planned else known
            yield {
                "name": name,
                "parameters": parameters,
                "required": None if planned else required,
                "result": result,
            }


def of_python(text: str) -> Iterator[Entry]:
    """Yield the tools of spec 004: functions with a decorator, and a table of signatures."""
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        for node in ast.parse(block).body:
            if isinstance(node, ast.AsyncFunctionDef) and node.decorator_list:
                columns = re.search(r'fmt = "(.*)"', ast.unparse(node).replace("'", '"'))
                fields = re.findall(r"#\{(\w+)\}", columns[1]) if columns else []
                yield {"name": node.name, **_signature(node), "result": {"formats": fields}}
    for name, signature in re.findall(
        r"^\| `(tmux_\w+)` \|[^|]*\| `\((.*?)\) -> str` \|", text, re.MULTILINE
    ):
        [function] = ast.parse(f"async def {name}({signature}): ...").body
        assert isinstance(function, ast.AsyncFunctionDef)
        yield {"name": name, **_signature(function), "result": {"formats": []}}


def _signature(function: ast.AsyncFunctionDef) -> Entry:
    arguments = function.args.args
    defaults = [ast.literal_eval(value) for value in function.args.defaults]
    first = len(arguments) - len(defaults)
    parameters: dict[str, Entry] = {}
    for number, argument in enumerate(arguments):
        annotation = ast.unparse(argument.annotation).split(" ")[0] if argument.annotation else ""
        parameter: Entry = {"type": _TYPES[annotation]} if annotation else {}
        if number >= first and defaults[number - first] is not None:
            parameter["default"] = defaults[number - first]
        parameters[argument.arg] = parameter
    return {"parameters": parameters, "required": [argument.arg for argument in arguments[:first]]}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
