"""The pictures of the README and the pages show what happens, and can be looked at."""

import json
import re

import anyio
import recording
from PIL import Image, ImageSequence

# What the agent says and calls, and what the person types.
SAID = re.compile(r"(?:^|│)(# .+?|> \w+\(.+?|\$ .+?) *(?=│|$)")
TOLD = (
    "TypeError: unsupported operand type(s) for +=",
    "blocked: writes to a pipe that only it reads",
    "awaits hidden input",
    "deployed (3 files)",
    "has the keyboard",
    "pdb exited with code 0",
)


def said(rows: str) -> set[str]:
    """Return how that begins which was said, without numbers, which differ from run to run."""
    found = [said for row in rows.split("\n") for said in SAID.findall(row)]
    return {re.sub(r"\d+", "0", said)[:30] for said in found}


def test_session_goes_as_the_pictures_show() -> None:
    """After a change that is meant, make the pictures anew: see CONTRIBUTING.md."""
    made = anyio.run(recording.session)
    texts = [screen.text() for _, screen in made.frames]
    seen = "\n".join(texts)
    in_words = " ".join(re.sub(r" *│.*", "", seen, flags=re.MULTILINE).split())

    places = [in_words.find(told) for told in TOLD]
    assert -1 not in places, places
    assert places == sorted(places)
    assert not any(word in seen for word in recording.SECRET.split())
    cast = recording.CAST.read_text().splitlines()
    drawn = [json.loads(line)[2] for line in cast[1:]]
    rows = "\n".join(re.sub(r"\033\[\d+;1H", "\n", text) for text in drawn)
    assert said(seen) == said(re.sub(r"\033\[[\d;]*\w", "", rows))
    assert "Printed meanwhile" in made.page


def test_picture_is_small_and_loops_within_half_a_minute() -> None:
    assert recording.PICTURE.stat().st_size <= recording.MAX_BYTES
    with Image.open(recording.PICTURE) as picture:
        times_ms = [frame.info["duration"] for frame in ImageSequence.Iterator(picture)]
        assert 12 <= sum(times_ms) / 1000 <= 30
        assert picture.info["loop"] == 0


def test_picture_has_something_to_see_at_once() -> None:
    with Image.open(recording.PICTURE) as picture:
        below_the_titles = picture.convert("RGB").crop((0, 20, *picture.size))
        assert len(below_the_titles.getcolors() or ()) > 2


def test_picture_of_the_audit_shows_its_page() -> None:
    with Image.open(recording.PAGE) as picture:
        assert picture.size == (1200, 720)
        assert len(picture.convert("RGB").getcolors(1 << 20) or ()) > 100
