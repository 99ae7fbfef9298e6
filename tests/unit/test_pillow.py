"""How to install Pillow is said in the words of what installed the server."""

import sys

import pytest

from tmux_debug_mcp.pictures import pillow


@pytest.mark.parametrize(
    ("prefix", "advice"),
    [
        ("/home/me/.cache/uv/archive-v0/Xy_1", "add --with pillow after uvx"),
        ("/mnt/cache/archive-v0/Xy_1", "add --with pillow after uvx"),
        ("/home/me/.local/pipx/venvs/tmux-debug-mcp", "pipx inject tmux-debug-mcp pillow"),
        ("/srv/clone/.venv", "'/srv/my clone/python' -m pip install pillow"),
    ],
)
def test_advice_is_the_command_of_the_installer(
    monkeypatch: pytest.MonkeyPatch, prefix: str, advice: str
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "executable", "/srv/my clone/python")
    monkeypatch.setattr(pillow, "find_spec", lambda name: name)

    assert pillow.how_to_add_pillow() == advice


def test_environment_without_pip_is_one_of_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/tools/python")
    monkeypatch.setattr(pillow, "find_spec", lambda _: None)

    assert pillow.how_to_add_pillow() == "uv pip install --python /opt/tools/python pillow"
