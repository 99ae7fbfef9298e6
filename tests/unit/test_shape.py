"""The shape of the code: imports go one way, and rooms keep their rules."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tmux_debug_mcp

PACKAGE = Path(tmux_debug_mcp.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# From below to above: a room imports only itself and rooms below it, and none in its own line.
LAYERS = (
    {"errors", "linux", "wire"},
    {"vt"},
    {"settings", "audit", "sockets", "streams", "lease"},
    {"tmux", "logs"},
    {"panes"},
    {"tools"},
    {"verbs"},
    {"server", "options"},
    {"demo"},
    {"cli"},
    {"detached"},
    {"viewing", "clients"},
    {"doctor"},
    {"command"},
    {"__main__"},
)
# What only these may import.
RESERVED = {
    "mcp": {"tools", "server", "demo"},
    "mcp_types": {"tools", "verbs", "server", "wire", "demo"},
    "PIL": {"vt", "viewing"},
    "re2": {"logs"},
    "jsonschema": {"tools"},
    "rich": {"viewing", "doctor"},
    "ruamel": {"clients"},
    "tomlkit": {"clients"},
}
# What a room may not import: `vt` does no I/O, and `linux` runs without our dependencies.
FORBIDDEN = {
    "vt": {"anyio", "mcp", "mcp_types", "os", "socket", "time", "tmux_debug_mcp.linux"},
    "linux": {"anyio", "mcp", "mcp_types", "orjson", "tmux_debug_mcp.errors"},
}
# Glyphs come from font files and fontconfig.
DOES_IO = {"vt/glyphs.py"}
# Pure modules in rooms that do I/O.
PURE = {
    "tmux/control_mode.py",
    "tmux/targets.py",
    "tmux/captures.py",
    "tmux/pasting.py",
    "logs/excerpts.py",
    "panes/looking/activity.py",
    "panes/waiting/conditions.py",
    "panes/running/outcomes.py",
    "panes/looking/state.py",
}


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def layer_of(room: str) -> int:
    return next(number for number, rooms in enumerate(LAYERS) if room in rooms)


def imports(path: Path) -> Iterator[str]:
    """Yield the full names of what a file imports."""
    package = ["tmux_debug_mcp", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


over_modules = pytest.mark.parametrize("path", MODULES, ids=name_of)


@over_modules
def test_imports_go_down(path: Path) -> None:
    here = room_of(path)
    rooms = {name.split(".")[1] for name in imports(path) if name.startswith("tmux_debug_mcp.")}
    above_all = {"__init__", "__version__", "__file__"}
    for room in rooms - above_all - {here}:
        assert layer_of(room) < layer_of(here), room


@over_modules
def test_rooms_keep_their_rules(path: Path) -> None:
    here, imported = room_of(path), set(imports(path))
    roots = {name.split(".")[0] for name in imported}
    for module, rooms in RESERVED.items():
        assert module not in roots or here in rooms, module
    if name_of(path) not in DOES_IO:
        for module in FORBIDDEN.get(here, ()):
            assert not any(name == module or name.startswith(f"{module}.") for name in imported), (
                module
            )
    if name_of(path) in PURE:
        assert not roots & {"anyio", "os", "socket", "subprocess", "time"}


@over_modules
def test_only_the_command_line_reads_the_environment(path: Path) -> None:
    if room_of(path) != "command" and name_of(path) not in ("cli.py", "demo/debugging.py"):
        assert "os.environ" not in path.read_text()


@pytest.mark.parametrize(
    "room",
    [
        *("linux", "vt", "sockets", "tmux", "logs", "panes", "tools", "verbs"),
        *("viewing", "clients", "doctor", "command"),
    ],
)
def test_each_room_says_what_lives_there(room: str) -> None:
    text = (PACKAGE / room / "__init__.py").read_text()
    tree = ast.parse(text)
    assert len((ast.get_docstring(tree) or "").splitlines()) >= 3
    assert len(tree.body) == 1  # rooms have no code of their own


@over_modules
def test_code_has_air(path: Path) -> None:
    """One thought a line: no conditional expression in another, no assignment in an expression.

    An assignment may be all that an `if` or a `while` asks.
    """
    tree = ast.parse(path.read_text())
    asked = {id(node.test) for node in ast.walk(tree) if isinstance(node, ast.If | ast.While)}
    for node in ast.walk(tree):
        assert not isinstance(node, ast.NamedExpr) or id(node) in asked, node.lineno
        if isinstance(node, ast.IfExp):
            inner = [*ast.walk(node.body), *ast.walk(node.orelse), *ast.walk(node.test)]
            assert not any(isinstance(other, ast.IfExp) for other in inner), node.lineno
