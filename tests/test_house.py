"""The script of the rules finds what breaks one, and nothing in code that keeps them."""

from pathlib import Path

import pytest
from house import code_findings, text_findings

_ROOM = '"""A room.\n\nWhat lives there.\nWhat may not.\n"""\n'
_CLEAN = {
    "__init__.py": "",
    "errors.py": "",
    "tmux/__init__.py": _ROOM,
    "tmux/targets.py": "from ..errors import Error\n",
    "tools/__init__.py": _ROOM,
    "tools/debug.py": "from mcp import types\n\nfrom ..tmux import targets\n",
}
_PAGES = {
    ".ci/run": "./dev test\n",
    "README.md": "# A project\n\n```sh\n./dev test\n```\n\n[Pages](docs/README.md#pages)\n",
    "docs/README.md": "# Pages\n\n[Guarantees](guarantees.md)\n",
    "docs/guarantees.md": "# Guarantees\n\nNothing is lost: `test_nothing_is_lost`.\n",
    "tests/test_losses.py": "def test_nothing_is_lost() -> None: ...\n",
    "lib/mcp/default.nix": "{ }\n",
}


def found_in_code(root: Path, files: dict[str, str]) -> list[str]:
    package = {f"tmux_debug_mcp/{name}": text for name, text in (_CLEAN | files).items()}
    write(root, package)
    return [str(finding) for finding in code_findings(root)]


def found_in_pages(root: Path, files: dict[str, str]) -> list[str]:
    write(root, _PAGES | files)
    return [str(finding) for finding in text_findings(root)]


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_nothing_is_found_where_all_rules_are_kept(tmp_path: Path) -> None:
    assert found_in_code(tmp_path, {}) == []
    assert found_in_pages(tmp_path, {}) == []


@pytest.mark.parametrize(
    ("name", "text", "finding"),
    [
        (
            "wire.py",
            "\nfrom .tools import debug\n",
            "2: wire imports tools, which is not below it. Move down what both need.",
        ),
        (
            "wire.py",
            "if TYPE_CHECKING:\n    import tmux_debug_mcp.tools.debug\n",
            "2: wire imports tools, which is not below it. Move down what both need.",
        ),
        ("helpers.py", "", "1: the room helpers is in no layer. Add it to tests/tools/house.py."),
        (
            "tmux/host.py",
            "import jsonschema\n",
            "1: only tools may import jsonschema. Move this there.",
        ),
        (
            "tmux/targets.py",
            "import os\n",
            "1: tmux/targets.py may not import os. Let its caller do that.",
        ),
        (
            "tmux/host.py",
            "import os\n\nHOME = os.environ['HOME']\n",
            "3: os.environ is read here. Take it as an argument.",
        ),
        (
            "tmux/__init__.py",
            '"""A room."""\n',
            "1: the docstring is too short. Say what lives here, and what may not.",
        ),
        (
            "tmux/__init__.py",
            _ROOM + "A = 1\n",
            "1: this package has code of its own. Move it to a module.",
        ),
        (
            "tmux/host.py",
            "def f(a):\n    return [b := a, b]\n",
            "2: an assignment is within an expression. Put it on a line before.",
        ),
        (
            "tmux/host.py",
            "A = 1 if B else 2 if C else 3\n",
            "1: a conditional expression is in another. Use `if`, or names.",
        ),
    ],
)
def test_code_that_breaks_a_rule_is_found(
    tmp_path: Path, name: str, text: str, finding: str
) -> None:
    assert found_in_code(tmp_path, {name: text}) == [f"tmux_debug_mcp/{name}:{finding}"]


_CIRCLE_OF_MODULES = {
    "tmux/host.py": "from .supervisor import Supervisor\n",
    "tmux/supervisor.py": "from . import host\n",
}
_CIRCLE_OF_PACKAGES = {
    "tmux/client.py": "from .panes.ids import PaneId\n",
    "tmux/errors.py": "",
    "tmux/panes/__init__.py": '"""Panes of tmux."""\n',
    "tmux/panes/ids.py": "\nfrom ..errors import PaneError\n",
}


@pytest.mark.parametrize(
    ("files", "finding"),
    [
        (
            _CIRCLE_OF_MODULES,
            "tmux/host.py:1: tmux.host → tmux.supervisor → tmux.host is a circle.",
        ),
        (_CIRCLE_OF_PACKAGES, "tmux/client.py:1: tmux → tmux.panes → tmux is a circle."),
    ],
    ids=["modules", "packages"],
)
def test_modules_or_packages_that_import_each_other_are_found(
    tmp_path: Path, files: dict[str, str], finding: str
) -> None:
    assert found_in_code(tmp_path, files) == [f"tmux_debug_mcp/{finding} Move down what both need."]


@pytest.mark.parametrize(
    ("name", "text", "finding"),
    [
        ("docs/more.md", "# More\n", "1: docs/README.md has no link to this page. Add one."),
        (
            "docs/guarantees.md",
            "`test_all_is_kept`\n",
            "1: there is no test_all_is_kept. Name a test that proves this.",
        ),
        (
            "docs/guarantees.md",
            "\n[Pages](READMI.md)\n",
            "2: READMI.md leads nowhere. Mend the link.",
        ),
        (
            "docs/guarantees.md",
            "[Pages](README.md#page)\n",
            "1: README.md#page leads nowhere. Mend the link.",
        ),
        ("docs/recipes/a.md", "a\n" * 121, "121: there are more than 120 lines. Shorten it."),
        ("README.md", "a" * 121, "1: 121 columns. Wrap at 120."),
        (
            "README.md",
            "# A project\n\n```sh\n./dev best\n```\n",
            "4: ./dev best is not in .ci/run. Add it there.",
        ),
        (
            "lib/mcp/default.nix",
            "{\n  sandbox = 1;\n}\n",
            "2: this names the sandbox. lib/sandbox may know this.",
        ),
    ],
)
def test_page_or_flake_that_breaks_a_rule_is_found(
    tmp_path: Path, name: str, text: str, finding: str
) -> None:
    assert f"{name}:{finding}" in found_in_pages(tmp_path, {name: text})
