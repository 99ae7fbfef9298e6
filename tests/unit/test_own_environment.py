"""What in an environment is the project's, and what is that of whoever started us."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tmux_debug_mcp.own_environment import ignore_python_path, of_project
from tmux_debug_mcp.settings import pane_environment

IMAGE = "/run/.mount_EditorXYZ"
APPIMAGE = {"APPIMAGE": "/home/me/editor", "APPDIR": IMAGE, "ARGV0": "editor", "OWD": "/home/me"}
CODE = "/usr/share/code/resources/app/extensions/git/dist"
GIT = {"VSCODE_GIT_ASKPASS_MAIN": f"{CODE}/askpass-main.js", "VSCODE_GIT_IPC_HANDLE": "/run/git"}


@pytest.mark.parametrize(
    ("environ", "project"),
    [
        ({"PATH": "/bin", "A": ""}, {"PATH": "/bin", "A": ""}),
        ({"ELECTRON_RUN_AS_NODE": "1", "NODE_ENV": "test"}, {"NODE_ENV": "test"}),
        # What the user has set for the project's Python stays.
        ({"PYTHONHOME": "/opt/python", "PYTHONPATH": "src"},) * 2,
        # An AppImage.
        (
            APPIMAGE
            | {
                "PATH": f"{IMAGE}/usr/bin:{IMAGE}:/usr/bin",
                "LD_LIBRARY_PATH": f"{IMAGE}/usr/lib:",
                "PYTHONHOME": f"{IMAGE}/usr",
                "PYTHONPATH": f"{IMAGE}/usr/lib/python3:/home/me/src",
                "XDG_DATA_DIRS": f"{IMAGE}/usr/share/:/usr/share",
                "URL": "http://host:80",
                "NEAR": f"{IMAGE}2/lib",
            },
            {
                "PATH": "/usr/bin",
                "LD_LIBRARY_PATH": "",
                "PYTHONPATH": "/home/me/src",
                "XDG_DATA_DIRS": "/usr/share",
                "URL": "http://host:80",
                "NEAR": f"{IMAGE}2/lib",
            },
        ),
        # Where there is no AppImage, these are anybody's.
        ({"APPDIR": "/app", "OWD": "1", "PATH": "/app/bin:/bin"},) * 2,
        ({"APPIMAGE": "x", "APPDIR": "", "PATH": "/bin"}, {"PATH": "/bin"}),
        # The programs by which an editor asks.
        (
            GIT
            | {
                "GIT_ASKPASS": f"{CODE}/askpass.sh",
                "SSH_ASKPASS": f"{CODE}/ssh-askpass.sh",
                "SSH_ASKPASS_REQUIRE": "force",
                "VSCODE_PID": "1",
            },
            {"VSCODE_PID": "1"},
        ),
        (GIT | {"SSH_ASKPASS": "/usr/bin/ksshaskpass"}, {"SSH_ASKPASS": "/usr/bin/ksshaskpass"}),
        ({"GIT_ASKPASS": "/home/me/askpass.sh"},) * 2,
    ],
)
def test_packaging_of_a_client_is_not_the_projects(
    environ: Mapping[str, str], project: Mapping[str, str]
) -> None:
    assert of_project(environ) == project
    assert of_project(project) == project
    assert pane_environment({"LANG": "C", **environ}, []) == {"LANG": "C", **project}


def test_programs_of_an_environment_that_uv_made_for_us_are_not_the_projects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "prefix", "/cache/uv/archive-v0/x")
    ours, uv = "/cache/uv/archive-v0/x/bin", {"UV": "/bin/uv"}

    assert of_project(uv | {"PATH": f"{ours}:/bin"}) == uv | {"PATH": "/bin"}
    active = uv | {"PATH": f"{ours}:/bin", "VIRTUAL_ENV": "/cache/uv/archive-v0/x"}
    for kept in (active, {"PATH": f"{ours}:/bin"}, uv | {"PATH": f"/bin:{ours}"}):
        assert of_project(kept) == kept
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)  # not made for us
    assert of_project(uv | {"PATH": f"{ours}:/bin"}) == uv | {"PATH": f"{ours}:/bin"}


def test_modules_of_the_project_are_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/usr")
    paths = ["/usr/src", "/proj", "/usr/lib/python3", f"{sys.prefix}/lib/site-packages"]
    monkeypatch.setattr(sys, "path", [*paths])

    ignore_python_path({})
    assert sys.path == paths
    ignore_python_path({"PYTHONPATH": f"src::/proj:/other:{paths[3]}"})
    assert sys.path == paths[2:]


def test_package_that_python_path_leads_to_takes_others_from_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tmux_debug_mcp.own_environment._ROOT", "/clone")
    monkeypatch.setattr(sys, "path", ["/clone", "/others"])

    ignore_python_path({"PYTHONPATH": "/clone:/others"})

    assert sys.path == ["/clone", "/others"]


def test_current_directory_may_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(sys, "path", ["/lib", "/proj"])
    ignore_python_path({"PYTHONPATH": "src:/proj"})

    assert sys.path == ["/lib"]
