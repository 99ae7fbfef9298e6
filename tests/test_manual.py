"""What the wheel installs beside the code is that of the code, and is shown as it should be."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import manual
import pytest

from tmux_debug_mcp.options import OPTIONS
from tmux_debug_mcp.verbs import help as texts
from tmux_debug_mcp.verbs.parsing import parser_of
from tmux_debug_mcp.verbs.registry import VERBS

PAGES = sorted(manual.DATA.rglob("*.1"))
over_pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
needs = pytest.mark.skipif

_UTF_8 = {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}


def shown(page: Path) -> str:
    """Return a page as a terminal of 80 columns shows it, without its bold and underlined text."""
    done = subprocess.run(
        ["groff", "-ww", "-mandoc", "-Tutf8", "-rLL=78n", "-P-c", str(page)],
        env=_UTF_8,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return re.sub(".\b", "", done.stdout)


@pytest.fixture
def command_page() -> str:
    return shown(manual.DATA / "share/man/man1/tmux-debug.1")


def test_what_is_installed_is_that_of_the_code() -> None:
    """After a change that is meant, write the files anew: see CONTRIBUTING.md."""
    files = [path for path in manual.DATA.rglob("*") if path.is_file()]
    installed = {path.relative_to(manual.DATA): path.read_text() for path in files}

    assert installed == manual.files()


@over_pages
@needs(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_mandoc_has_no_complaint(page: Path) -> None:
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "all", str(page)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.returncode) == ("", 0)


@needs(shutil.which("groff") is None, reason="groff is not installed")
class TestShownByGroff:
    @over_pages
    def test_page_fits_a_terminal_of_80_columns_and_breaks_no_name(self, page: Path) -> None:
        lines = shown(page).splitlines()

        assert max(map(len, lines)) <= 80
        assert not [line for line in lines if line.endswith("\N{HYPHEN}")]

    def test_every_verb_and_its_flags_are_on_the_page_of_the_command(
        self, command_page: str
    ) -> None:
        for verb in VERBS.values():
            assert re.search(rf"^ {{7}}{verb.name}\b", command_page, re.MULTILINE), verb.name
            for flag in set(parser_of(verb).flags) - {"--help"}:
                assert flag in command_page, flag

    def test_every_exit_status_is_there(self, command_page: str) -> None:
        section = command_page.split("EXIT STATUS")[1]
        statuses = re.findall(r"^       (\d+) ", section, re.MULTILINE)

        assert statuses == re.findall(r"(\d+) ", texts.overview().split("Exit status:")[1])

    def test_every_option_and_its_variable_are_on_the_page_of_the_server(self) -> None:
        text = shown(manual.DATA / "share/man/man1/tmux-debug-mcp.1")
        words = text.replace(";", " ").replace(".\n", "\n").split()

        for option in OPTIONS:
            assert f"--{option.flag}" in words
            assert option.variable in words

    def test_values_are_shown_as_they_are_typed(self, command_page: str) -> None:
        words = " ".join(command_page.split())
        for explained in ("CLIENT claude-code, codex, ", " user = for you ", " screen: rows as "):
            assert explained in words

    def test_examples_are_shown_as_they_are_typed(self, command_page: str) -> None:
        assert (
            "           tmux-debug create --name web --wait-for listening 'python3 app.py'\n"
        ) in command_page
