"""The recipes are true: their commands are run again, with real programs."""

import contextlib
import difflib
from pathlib import Path

import pytest
import recipes
from hosts import NoHostError


@pytest.mark.parametrize("name", recipes.names())
def test_recipe_is_what_happens(name: str, short_path: Path) -> None:
    page = (recipes.PAGES / f"{name}.md").read_text()
    with contextlib.ExitStack() as stack:
        try:
            recipes.check_programs(page)
            place = stack.enter_context(recipes.place(name, short_path))
        except NoHostError as error:
            pytest.skip(f"the recipe {name}: {error}")
        for done in recipes.run(page, place):
            shown, printed = done.command.output.splitlines(), done.output.splitlines()
            difference = [f"$ {done.command.line}", *difflib.ndiff(shown, printed)]
            assert done.is_as_shown, "\n".join(difference)


@pytest.mark.parametrize("name", recipes.names())
def test_recipe_is_short(name: str) -> None:
    page = (recipes.PAGES / f"{name}.md").read_text()

    assert 2 <= len(recipes.commands_of(page)) <= recipes.MAX_COMMANDS
    assert len(page.splitlines()) <= 120
    assert max(map(len, page.splitlines())) <= 120
