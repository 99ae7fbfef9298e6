"""Rules for the text of the code and of the pages, which `./dev check` looks at.

Imports go down from room to room, and no packages import each other in a circle. A room is a
module or a package directly in `tmux_debug_mcp`.

Run as a program, this prints `file:line: what is so. What to do.` for each thing that breaks a
rule, and exits with 1 if there are any.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "tmux_debug_mcp"
HERE = "tests/tools/house.py"

# From below to above: a room imports only itself and rooms below it, and none on its own floor.
LAYERS = (
    {"errors", "linux", "wire", "clock", "turns", "own_command", "own_environment"},
    {"vt"},
    {"pictures"},
    {"settings", "audit", "sockets", "streams", "lease"},
    {"tmux", "logs"},
    {"panes"},
    {"tools"},
    {"verbs"},
    {"server", "options"},
    {"option_checks"},
    {"serving"},
    {"demo"},
    {"cli"},
    {"viewing", "clients"},
    {"doctor"},
    {"command"},
    {"__main__"},
)
# What only these rooms may import.
RESERVED = {
    "mcp": {"tools", "server", "streams", "demo", "doctor"},
    "mcp_types": {"tools", "verbs", "server", "wire", "demo", "doctor"},
    "PIL": {"pictures", "viewing"},
    "re2": {"logs"},
    "jsonschema": {"tools"},
}
# What a room may not import: `vt` does no I/O, and `linux` runs without our dependencies.
FORBIDDEN = {
    "vt": {"anyio", "mcp", "mcp_types", "os", "socket", "time"},
    "pictures": {"anyio", "os", "socket", "subprocess", "time"},
    "linux": {"anyio", "mcp", "mcp_types", "orjson", f"{PACKAGE}.errors"},
}
# Glyphs come from font files and fontconfig.
DOES_IO = {"pictures/glyphs.py"}
# Modules without I/O in rooms that do I/O.
PURE = {
    "tmux/control_mode.py",
    "tmux/targets.py",
    "tmux/text.py",
    "logs/excerpts.py",
    "panes/looking/activity.py",
    "panes/looking/state.py",
}
OF_IO = {"anyio", "os", "socket", "subprocess", "time"}
# The rooms and modules that know the environment variables of the process.
READ_ENVIRONMENT = {"command", "cli.py", "demo/debugging.py"}

# The longest that a page may be, in lines.
MAX_LINES = {"README.md": 125, "docs/recipes/*.md": 120, "flake.nix": 90}
MAX_COLUMNS = 120

_LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")
_NAMED_TEST = re.compile(r"`(?:\w+/)*(test_\w+)(\.py)?`")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that breaks a rule.

    Attributes:
        path: The file, as seen from the root.
        line: The number of the line, from 1.
        text: What is so, and what to do.
    """

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Module:
    """A module of the package: `path` is below `root`, and `name` has no `tmux_debug_mcp.`."""

    root: Path
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def in_package(self) -> Path:
        return self.path.relative_to(self.root / PACKAGE)

    @property
    def name(self) -> str:
        parts = self.in_package.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def package(self) -> str:
        """The package that the module is in. A module directly in ours is one of its own."""
        return ".".join(self.in_package.parts[:-1]) or self.name

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]

    def imports(self) -> Iterator[tuple[str, int]]:
        """Yield the full name of each import, with the number of its line."""
        package = [PACKAGE, *self.in_package.parts[:-1]]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                name = ".".join([*base, *filter(None, [node.module])])
                yield from ((f"{name}.{alias.name}", node.lineno) for alias in node.names)

    @property
    def shown_path(self) -> str:
        return str(self.path.relative_to(self.root))

    def finding(self, line: int, text: str) -> Finding:
        return Finding(self.shown_path, line, text)


def modules_of(root: Path) -> list[Module]:
    """Return the modules of the package below this directory."""
    return [Module(root, path) for path in sorted((root / PACKAGE).rglob("*.py"))]


# The code.


def imports_go_down(modules: Iterable[Module]) -> Iterator[Finding]:
    """Find imports from a room that is not below, and rooms without a place."""
    floors = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}
    for module in modules:
        if module.room and module.room not in floors:
            yield module.finding(1, f"the room {module.room} is in no layer. Add it to {HERE}.")
            continue
        for name, line in module.imports():
            package, _, rest = name.partition(".")
            room = rest.partition(".")[0]
            if package != PACKAGE or room == module.room or room not in floors:
                continue
            if not module.room or floors[room] >= floors[module.room]:
                yield module.finding(
                    line,
                    f"{module.room or PACKAGE} imports {room}, which is not below it. "
                    "Move down what both need.",
                )


def rooms_import_what_they_may(modules: Iterable[Module]) -> Iterator[Finding]:
    """Find imports that belong to other rooms, and I/O where none may be."""
    for module in modules:
        path = str(module.in_package)
        forbidden = set(FORBIDDEN.get(module.room, ())) if path not in DOES_IO else set()
        forbidden |= OF_IO if path in PURE else set()
        for name, line in module.imports():
            root = name.partition(".")[0]
            rooms = RESERVED.get(root)
            if rooms and module.room not in rooms:
                only = ", ".join(sorted(rooms))
                yield module.finding(line, f"only {only} may import {root}. Move this there.")
            if any(name == one or name.startswith(f"{one}.") for one in forbidden):
                yield module.finding(line, f"{path} may not import {name}. Let its caller do that.")


def only_the_command_line_reads_the_environment(modules: Iterable[Module]) -> Iterator[Finding]:
    for module in modules:
        if {module.room, str(module.in_package)} & READ_ENVIRONMENT:
            continue
        for number, line in enumerate(module.text.splitlines(), 1):
            if "os.environ" in line:
                yield module.finding(number, "os.environ is read here. Take it as an argument.")


def rooms_say_what_lives_there(modules: Iterable[Module]) -> Iterator[Finding]:
    """Find packages whose `__init__` has code, or no docstring of three lines and more."""
    for module in modules:
        if module.path.name != "__init__.py" or module.name in ("", "demo"):
            continue
        if len(module.tree.body) > 1:
            yield module.finding(1, "this package has code of its own. Move it to a module.")
        is_inner = "." in module.name
        docstring = ast.get_docstring(module.tree) or ""
        if not docstring or (not is_inner and len(docstring.splitlines()) < 3):
            yield module.finding(
                1, "the docstring is too short. Say what lives here, and what may not."
            )


def code_has_air(modules: Iterable[Module]) -> Iterator[Finding]:
    """Find conditional expressions in others, and assignments within expressions.

    An assignment may be all that an `if` or a `while` asks.
    """
    for module in modules:
        nodes = list(ast.walk(module.tree))
        asked = {id(node.test) for node in nodes if isinstance(node, ast.If | ast.While)}
        for node in nodes:
            if isinstance(node, ast.NamedExpr) and id(node) not in asked:
                yield module.finding(
                    node.lineno, "an assignment is within an expression. Put it on a line before."
                )
            if isinstance(node, ast.IfExp):
                inner = [one for part in ast.iter_child_nodes(node) for one in ast.walk(part)]
                if any(isinstance(one, ast.IfExp) for one in inner):
                    yield module.finding(
                        node.lineno, "a conditional expression is in another. Use `if`, or names."
                    )


def nothing_imports_in_a_circle(modules: list[Module]) -> Iterator[Finding]:
    """Find modules and packages that import each other."""
    for node_of in (lambda module: module.name), (lambda module: module.package):
        graph = imports_between(modules, node_of)
        for circle in circles(graph):
            path, line = graph[circle[0]][circle[1]]
            way = " → ".join([*circle, circle[0]])
            yield Finding(path, line, f"{way} is a circle. Move down what both need.")


def imports_between(
    modules: Iterable[Module], node_of: Callable[[Module], str]
) -> dict[str, dict[str, tuple[str, int]]]:
    """Return what each node imports of others, with the file and line of the first import.

    Args:
        modules: All modules.
        node_of: The node that a module belongs to: itself, or its package.
    """
    by_name = {module.name: module for module in modules}
    graph: dict[str, dict[str, tuple[str, int]]] = {node_of(module): {} for module in modules}
    for module in modules:
        for full_name, line in module.imports():
            name = full_name.removeprefix(f"{PACKAGE}.")
            while name and name not in by_name:
                name = name.rpartition(".")[0]
            node = node_of(by_name.get(name, module))
            if node != node_of(module) and full_name.startswith(f"{PACKAGE}."):
                graph[node_of(module)].setdefault(node, (module.shown_path, line))
    return graph


def circles(graph: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Yield circles, each as the nodes on its way, until what is left has none.

    The names of a circle begin with the first in the alphabet.
    """
    left = {node: set(below) for node, below in graph.items()}
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            circle = error.args[1][:0:-1]
            first = circle.index(min(circle))
            circle = circle[first:] + circle[:first]
        else:
            return
        yield circle
        left[circle[0]].discard(circle[1])


# The pages.


def links_lead_somewhere(root: Path) -> Iterator[Finding]:
    for document in documents(root):
        for number, line in enumerate(document.read_text().splitlines(), 1):
            for path, anchor in _LINK.findall(line):
                target = document.parent / path if path else document
                shown = path + (anchor and f"#{anchor}")
                is_there = target.exists() and (not anchor or anchor in anchors(target))
                if not is_there:
                    yield _in(document, root, number, f"{shown} leads nowhere. Mend the link.")


def index_has_every_page(root: Path) -> Iterator[Finding]:
    docs = root / "docs"
    index = docs / "README.md"
    linked = {(docs / path).resolve() for path, _ in _LINK.findall(index.read_text())}
    for page in sorted(docs.rglob("*.md")):
        if page != index and page.resolve() not in linked:
            yield _in(page, root, 1, "docs/README.md has no link to this page. Add one.")


def guarantees_name_tests_that_exist(root: Path) -> Iterator[Finding]:
    page = root / "docs" / "guarantees.md"
    files = list((root / "tests").rglob("test_*.py"))
    stems = {path.stem for path in files}
    text = "".join(path.read_text() for path in files)
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for name, is_file in _NAMED_TEST.findall(line):
            if not (name in stems if is_file else f"def {name}(" in text):
                yield _in(page, root, number, f"there is no {name}. Name a test that proves this.")


def pages_are_short(root: Path) -> Iterator[Finding]:
    for pattern, most in MAX_LINES.items():
        for page in sorted(root.glob(pattern)):
            lines = page.read_text().splitlines()
            if len(lines) > most:
                yield _in(page, root, most + 1, f"there are more than {most} lines. Shorten it.")
            for number, line in enumerate(lines, 1):
                if len(line) > MAX_COLUMNS:
                    yield _in(page, root, number, f"{len(line)} columns. Wrap at {MAX_COLUMNS}.")


def readme_has_the_commands_of_ci(root: Path) -> Iterator[Finding]:
    readme = root / "README.md"
    run_by_ci = set((root / ".ci" / "run").read_text().splitlines())
    is_shell = False
    for number, line in enumerate(readme.read_text().splitlines(), 1):
        if line.startswith("```"):
            is_shell = line == "```sh"
        elif is_shell and line not in run_by_ci:
            yield _in(readme, root, number, f"{line} is not in .ci/run. Add it there.")


# The flake.


def servers_know_nothing_of_the_sandbox(root: Path) -> Iterator[Finding]:
    for path in sorted((root / "lib" / "mcp").rglob("*.nix")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "sandbox" in line:
                yield _in(path, root, number, "this names the sandbox. lib/sandbox may know this.")


def nothing_else_refers_to_the_stand_in_for_nixpkgs(root: Path) -> Iterator[Finding]:
    command = ["git", "grep", "--line-number", "hostpkgs", "--", ":!tests/nix", f":!{HERE}"]
    if (root / ".git").exists():
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        for row in done.stdout.splitlines():
            path, line, _ = row.split(":", 2)
            yield Finding(path, int(line), "this names hostpkgs. Only tests/nix may use it.")


def documents(root: Path) -> list[Path]:
    """Return the pages of the project."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def anchors(document: Path) -> set[str]:
    """Return what links to a document's sections have behind the #."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _in(path: Path, root: Path, line: int, text: str) -> Finding:
    return Finding(str(path.relative_to(root)), line, text)


def code_findings(root: Path) -> Iterator[Finding]:
    """Yield what breaks a rule in the package below this directory."""
    modules = modules_of(root)
    yield from imports_go_down(modules)
    yield from rooms_import_what_they_may(modules)
    yield from only_the_command_line_reads_the_environment(modules)
    yield from rooms_say_what_lives_there(modules)
    yield from code_has_air(modules)
    yield from nothing_imports_in_a_circle(modules)


def text_findings(root: Path) -> Iterator[Finding]:
    """Yield what breaks a rule in the pages and the flake below this directory."""
    yield from links_lead_somewhere(root)
    yield from index_has_every_page(root)
    yield from guarantees_name_tests_that_exist(root)
    yield from pages_are_short(root)
    yield from readme_has_the_commands_of_ci(root)
    yield from servers_know_nothing_of_the_sandbox(root)
    yield from nothing_else_refers_to_the_stand_in_for_nixpkgs(root)


def main() -> None:
    found = [*code_findings(ROOT), *text_findings(ROOT)]
    for finding in found:
        print(finding)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
