"""The pictures of the README and the pages show what happens, and can be looked at."""

import json
import re

import anyio
import recording
from PIL import Image, ImageSequence

from tmux_debug_mcp.demo.debugging import SECRET

# What the agent says and calls, and what the person types.
SAID = re.compile(r"^(?:# |> \w+\(|\$ ).+")
TOLD = (
    "blocked: waits for locks in all 2 threads (futex)",
    "(<bob: locked>, <alice: locked>)",
    "awaits hidden input",
    "Typed into pane",
    "deployed",
)


def said(rows: str) -> set[str]:
    """Return how that begins which was said, without numbers, which differ from run to run."""
    found = [said.rstrip() for row in rows.split("\n") for said in SAID.findall(row)]
    return {re.sub(r"\d+", "0", said)[:30] for said in found}


def test_session_goes_as_the_pictures_show() -> None:
    """After a change that is meant, make the pictures anew: see CONTRIBUTING.md."""
    made = anyio.run(recording.session)
    texts = [screen.text() for _, screen in made.frames]
    seen = "\n".join(texts)
    in_words = " ".join(seen.split())

    places = [in_words.find(told) for told in TOLD]
    assert -1 not in places, places
    assert places == sorted(places)
    assert not any(word in seen for word in SECRET.split())
    cast = recording.CAST.read_text().splitlines()
    drawn = [json.loads(line)[2] for line in cast[1:]]
    rows = "\n".join(re.sub(r"\033\[\d+;1H", "\n", text) for text in drawn)
    assert said(seen) == said(re.sub(r"\033\[[\d;]*\w", "", rows))
    assert "Printed meanwhile" in made.page


def test_picture_is_small_and_loops_every_12_seconds() -> None:
    assert recording.PICTURE.stat().st_size <= recording.MAX_BYTES
    with Image.open(recording.PICTURE) as picture:
        times_ms = [frame.info["duration"] for frame in ImageSequence.Iterator(picture)]
        assert 11 <= sum(times_ms) / 1000 <= 13
        assert picture.info["loop"] == 0


def luma(colour: tuple[int, int, int]) -> float:
    """Return how bright a colour is. Source: ITU-R BT.709."""
    red, green, blue = colour
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_picture_always_shows_a_status_line_which_is_the_brightest_in_it() -> None:
    with Image.open(recording.PICTURE) as picture:
        for frame in ImageSequence.Iterator(picture):
            pixels = frame.convert("RGB").tobytes()
            colours = set(zip(pixels[::3], pixels[1::3], pixels[2::3], strict=True))
            red, green, blue = max(colours, key=luma)
            assert min(red, green) > 5 * blue  # yellow


def test_picture_of_the_audit_shows_its_page() -> None:
    with Image.open(recording.PAGE) as picture:
        assert picture.size == (1200, 720)
        assert len(picture.convert("RGB").getcolors(1 << 20) or ()) > 100
