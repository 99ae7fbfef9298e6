"""The versions of tmux: how they are read, and what we do differently for some. No I/O.

What only some versions get wrong is done in a way that is right for all.
"""

import re

OLDEST = (3, 3)
# From this version on, tmux joins emoji with the characters that modify them.
WIDENS_EMOJI = (3, 4)
# From this version on, paste-buffer without -S rewrites control characters.
CLEANS_PASTES = (3, 7)


def version(text: str) -> tuple[int, int] | None:
    """Return the major and minor number in what `tmux -V` or `#{version}` prints.

    A version without a number, such as `tmux master`, is newer than any release: None.
    """
    number = re.search(r"(\d+)\.(\d+)", text)
    if number is None:
        return None
    return int(number[1]), int(number[2])


def is_at_least(text: str, wanted: tuple[int, int]) -> bool:
    """Return whether a version is not older than `wanted`. Without a number, it is newer."""
    number = version(text)
    return number is None or number >= wanted


def is_new_enough(answer: str) -> bool:
    """Return whether an answer of `tmux -V` names a version that we can use."""
    number = version(answer)
    if number:
        return number >= OLDEST
    return answer.startswith("tmux")  # a version without a number, such as "tmux master", is new
