"""How to add Pillow, which pictures need, to the Python that runs us."""

import re
import shlex
import sys
from importlib.util import find_spec

_UVX = re.compile(r"/archive-v[0-9]+/|/\.cache/uv/")
_PIPX = re.compile(r"/pipx/venvs/([^/]+)$")


def how_to_add_pillow() -> str:
    """Return the command that adds Pillow, by the tool that installed us."""
    if _UVX.search(sys.prefix):
        return "add --with pillow after uvx"
    installed = _PIPX.search(sys.prefix)
    if installed:
        return f"pipx inject {shlex.quote(installed[1])} pillow"
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python} pillow"
    return f"{python} -m pip install pillow"
