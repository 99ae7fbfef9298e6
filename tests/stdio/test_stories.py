"""Scripts debug the stories, and cost no more calls and bytes than the snapshot says."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from stories.scripts import play, stories
from wire import Server

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "stories.json"
# Process ids, times and paths have their lengths.
SLACK = 1.2


@pytest.mark.parametrize("name", stories())
def test_story_is_debugged_in_as_few_calls_and_bytes_as_before(
    launch: Callable[..., Server], name: str
) -> None:
    """After a change that is meant, write the snapshot anew: see CONTRIBUTING.md."""
    server = launch().start()
    cost = play(server, stories()[name])
    server.finish()

    before = orjson.loads(SNAPSHOT.read_bytes())[name]
    assert cost.calls == before["calls"]
    assert cost.bytes <= before["bytes"] * SLACK
