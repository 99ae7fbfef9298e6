"""The README's picture of the demo shows what the demo shows."""

import re

import recording


def test_picture_is_that_of_the_demo() -> None:
    """After a change that is meant, make the picture anew: see CONTRIBUTING.md."""
    assert recording.PICTURE.read_text() == recording.picture()


def test_picture_is_small_and_loops_within_half_a_minute() -> None:
    text = recording.PICTURE.read_text()
    [length] = set(re.findall(r"([\d.]+)s step-end infinite", text))

    assert len(text.encode()) <= recording.MAX_BYTES
    assert 12 <= float(length) <= 25
