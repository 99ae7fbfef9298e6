"""The shape of the code: imports go one way, and modules and functions stay small."""

import ast
from pathlib import Path

import pytest

import tmux_debug_mcp

PACKAGE = Path(tmux_debug_mcp.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# What each module may import of the package, in the order in which imports go.
ALLOWED = {
    "__init__": set(),
    "errors": set(),
    "files": set(),
    "linux": set(),
    "terminals": set(),
    "control_mode": set(),
    "screen": {"charsets", "rows"},
    "picture": {"rows", "screen"},
    "keys": {"errors"},
    "charsets": set(),
    "rows": set(),
    "sequences": set(),
    "marks": set(),
    "transcript": {"charsets", "marks", "rows", "sequences"},
    "logs": {"files", "marks", "transcript"},
    "reading": {"charsets", "drawing", "logs", "marks", "rows", "sequences", "texts", "transcript"},
    "lifetime": {"errors", "linux"},
    "audit": {"errors"},
    "client": {"control_mode", "errors", "lifetime", "linux", "targets"},
    "echo": {"rows"},
    "shells": {"linux", "terminals"},
    "jobs": {"client", "errors", "keys", "linux", "logs", "marks", "shells"},
    "panes": {"client", "doing", "errors", "jobs", "keyboard", "linux", "logs", "looking", "terminals"},
    "capturing": {"client", "errors", "marks", "panes", "screen"},
    "display": {"keys", "panes", "sending", "terminals"},
    "recording": {"capturing", "errors", "marks", "panes", "reading"},
    "running": {
        "doing",
        "errors",
        "giving",
        "jobs",
        "linux",
        "logs",
        "panes",
        "reading",
        "shells",
        "terminals",
        "texts",
    },
    "targets": {"errors", "sequences"},
    "servers": {
        "capturing",
        "control_mode",
        "creation",
        "display",
        "errors",
        "keyboard",
        "keys",
        "linux",
        "panes",
        "screen",
        "sending",
        "session",
        "targets",
        "transcript",
        "waiting",
    },
    "tools.tmux": {
        "creation",
        "display",
        "errors",
        "keys",
        "reading",
        "servers",
        "session",
        "targets",
        "tools",
        "tools.arguments",
    },
    "stopping": {"doing", "keys", "linux", "panes", "terminals"},
    "waiting": {"capturing", "doing", "drawing", "errors", "logs", "matching", "panes", "reading", "texts"},
    "doing": {"shells", "terminals"},
    "drawing": set(),
    "texts": set(),
    "giving": {"errors", "jobs", "keys", "linux", "marks", "panes", "reading", "shells", "terminals"},
    "keyboard": {"client", "doing", "echo", "keys", "logs", "shells", "terminals"},
    "looking": {"doing", "linux", "logs", "sequences", "shells", "terminals"},
    "searching": {"logs", "marks", "reading", "texts"},
    "sending": {"capturing", "doing", "errors", "keys", "linux", "panes"},
    "steps": {"errors", "keys"},
    "tools.results": {"archive", "panes", "running", "texts", "tools", "waiting"},
    "matching": {"drawing", "echo", "errors", "logs", "reading"},
    "archive": {"display", "errors", "files", "linux", "logs", "panes"},
    "creation": {"archive", "errors", "linux", "shells", "transcript"},
    "session": {"archive", "client", "creation", "errors", "lifetime", "logs", "panes", "linux", "recording"}
    | {"targets"},
    "tools.arguments": {"creation", "errors"},
    "tools": {"audit", "errors", "linux", "session", "tools.arguments"},
    "tools.debug": {
        "archive",
        "capturing",
        "creation",
        "errors",
        "logs",
        "matching",
        "panes",
        "reading",
        "running",
        "searching",
        "sending",
        "session",
        "steps",
        "texts",
        "tools",
        "tools.arguments",
        "tools.results",
        "waiting",
    },
    "tools.tabs": {
        "archive",
        "creation",
        "doing",
        "errors",
        "giving",
        "keys",
        "logs",
        "panes",
        "reading",
        "running",
        "sending",
        "session",
        "stopping",
        "texts",
        "tools",
        "tools.arguments",
        "tools.users_tabs",
        "waiting",
    },
    "tools.users_tabs": {
        "creation",
        "doing",
        "errors",
        "keys",
        "linux",
        "reading",
        "servers",
        "session",
        "shells",
        "stopping",
    }
    | {"targets", "tools"},
    "tools.terminal": {
        "archive",
        "capturing",
        "creation",
        "display",
        "errors",
        "keys",
        "panes",
        "picture",
        "reading",
        "sending",
        "session",
        "tools",
        "tools.arguments",
        "waiting",
    },
    "tools.screens": {"capturing", "errors", "panes", "session", "tools.terminal"},
    "server": {"__init__", "audit", "creation", "lifetime", "linux", "session", "tools", "tools.screens"} | {"wire"},
    "wire": set(),
    "environment": set(),
    "demo": set(),
    "demo.shop": set(),
    "demo.debugging": set(),
    "cli": {"__init__", "archive", "audit", "control_mode", "creation", "demo.debugging", "display", "errors", "server"}
    | {"tools"},
    "__main__": {"cli"},
}
LEAVES: tuple[str, ...] = (
    "charsets",
    "errors",
    "control_mode",
    "doing",
    "drawing",
    "keys",
    "marks",
    "rows",
    "screen",
    "sequences",
    "steps",
)
LEAVES += ("texts", "transcript")


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imports(path: Path) -> set[str]:
    """Return the modules that a file imports, those of the package by their names in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if not node.level and not (node.module or "").startswith("tmux_debug_mcp"):
                found.add(node.module or "")
                continue
            base = list(path.relative_to(PACKAGE).parts[:-1]) if node.level else []
            base += (node.module or "").removeprefix("tmux_debug_mcp").strip(".").split(".")
            module = ".".join(part for part in base if part)
            for alias in node.names:
                below = f"{module}.{alias.name}".strip(".")
                is_module = (PACKAGE / Path(*below.split("."))).with_suffix(".py").exists() or (
                    PACKAGE / Path(*below.split(".")) / "__init__.py"
                ).exists()
                found.add("tmux_debug_mcp:" + (below if is_module else module or "__init__"))
    return found


def ours(path: Path) -> set[str]:
    return {name.removeprefix("tmux_debug_mcp:") for name in imports(path) if name.startswith("tmux_debug_mcp:")}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_one_way(path: Path) -> None:
    assert ours(path) - {name_of(path)} <= ALLOWED[name_of(path)]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_leaves_know_no_io_and_only_the_edge_knows_mcp_and_the_environment(path: Path) -> None:
    name, roots = name_of(path), {module.split(".")[0] for module in imports(path)}
    if name in LEAVES:
        assert not roots & {"anyio", "mcp", "mcp_types", "os", "time", "subprocess"}
    if not name.startswith(("tools", "server", "wire", "demo")):
        assert not roots & {"mcp", "mcp_types"}
    if name not in ("cli", "demo.debugging"):
        assert "os.environ" not in path.read_text()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= 500
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node, clean=False) or ""
            assert (node.end_lineno or 0) - node.lineno - doc.count("\n") <= 50, node.name
