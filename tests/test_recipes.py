"""The recipes are true: their commands are run again, with real programs."""

import contextlib
import difflib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import recipes
from hosts import NoHostError
from mcp import Client, StdioServerParameters
from sessions import facts_of, fenced

from tmux_debug_mcp.tools import debug

pytestmark = pytest.mark.alone


@contextlib.contextmanager
def place(name: str, page: str, root: Path) -> Iterator[recipes.Place]:
    """Make a place for a page; skip the test where this machine can't have it."""
    with contextlib.ExitStack() as stack:
        try:
            recipes.check_programs(page)
            made = stack.enter_context(recipes.place(name, root))
        except NoHostError as error:
            pytest.skip(f"the recipe {name}: {error}")
        yield made


@pytest.mark.parametrize("name", recipes.names())
def test_recipe_is_what_happens(name: str, short_path: Path) -> None:
    page = (recipes.PAGES / f"{name}.md").read_text()
    with place(name, page, short_path) as here:
        for done in recipes.run(page, here):
            shown, printed = done.command.output.splitlines(), done.output.splitlines()
            difference = [f"$ {done.command.line}", *difflib.ndiff(shown, printed)]
            assert done.is_as_shown, "\n".join(difference)


_SHOWN = "Created pane\n  a(b)\n    ^\nNameError\n[web exited with code 1; cursor 12]\n"
_ACTUAL = "Created pane\n  a(b)\n    ~^~\nNameError\n\n[web exited with code 1; cursor 34]\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [("", ""), ("Created pane\n", "Created pane\nTraceback:\n"), ("    ~^~\n", ""), ("\n\n", "\n")],
    ids=["marks and cursors", "another line", "no marks", "no empty line"],
)
def test_output_that_differs_in_what_does_not_matter_is_as_shown(old: str, new: str) -> None:
    assert facts_of(_SHOWN, _ACTUAL.replace(old, new)) == {"12": "34"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("NameError", "TypeError"),
        ("code 1;", "code 2;"),
        ("  a(b)\n    ~^~\nNameError\n", "NameError\n  a(b)\n"),
        ("cursor 34]\n", "cursor 34]\nTraceback:\n"),
    ],
    ids=["another error", "another exit code", "another order", "a line behind the status"],
)
def test_output_that_differs_in_what_matters_is_not_as_shown(old: str, new: str) -> None:
    assert facts_of(_SHOWN, _ACTUAL.replace(old, new)) is None


def test_output_where_none_is_shown_is_not_as_shown() -> None:
    assert facts_of("", "usage\n") is None
    assert facts_of("", "") == {}
    assert facts_of("one\n…\n", "one\ntwo\nthree\n") == {}


@pytest.mark.parametrize("name", recipes.names())
def test_recipe_has_few_commands(name: str) -> None:
    page = (recipes.PAGES / f"{name}.md").read_text()

    assert 2 <= len(recipes.commands_of(page)) <= recipes.MAX_COMMANDS


@pytest.mark.parametrize("name", ["ssh", "container"])
async def test_configured_client_reaches_the_other_host(name: str, short_path: Path) -> None:
    page = (recipes.PAGES / f"{name}.md").read_text()
    [configuration] = map(json.loads, fenced(page, "json"))
    [server] = configuration["mcpServers"].values()
    with place(name, page, short_path) as here:
        command = str(here.programs / server["command"])
        parameters = StdioServerParameters(command=command, args=server["args"], env=dict(here.env))
        async with Client(parameters) as client:
            assert len((await client.list_tools()).tools) == len(debug.TOOLSET.tools)
            result = await client.call_tool("tmux_run", {"command": "pwd"})

    assert str(here.directory) in str(result.content)
