"""One target under atheris, which takes libFuzzer's arguments: `python -m fuzz.one TARGET ...`."""

import sys

import atheris

atheris.enabled_hooks.add("str")
with atheris.instrument_imports(include=["tmux_debug_mcp"]):
    from .targets import TARGETS

name = sys.argv.pop(1)
atheris.Setup(sys.argv, TARGETS[name])
atheris.Fuzz()
