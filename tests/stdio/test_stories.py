"""Scripts debug the stories, and cost as many calls and bytes as the snapshot says."""

from pathlib import Path

import orjson
import pytest
from stories.scripts import play, stories
from wire import Server

pytestmark = pytest.mark.xdist_group("stories")

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "stories.json"
# Process ids, times and paths have their lengths.
SLACK = 1.2


@pytest.mark.parametrize("name", stories())
def test_story_is_debugged_in_as_many_calls_and_bytes_as_before(shared: Server, name: str) -> None:
    """After a change that is meant, write the snapshot anew: see CONTRIBUTING.md."""
    cost = play(shared, stories()[name])

    before = orjson.loads(SNAPSHOT.read_bytes())[name]
    assert cost.calls == before["calls"]
    assert before["bytes"] / SLACK <= cost.bytes <= before["bytes"] * SLACK
