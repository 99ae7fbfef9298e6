"""`./dev release` makes the files of a release, or leaves everything as it was."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import release as releases
from packages import checkout

pytest.importorskip(
    "flit_core.buildapi", reason="flit_core is not installed; ./dev test installs it"
)

ADDRESS = "https://github.com/somebody/tmux-debug-mcp"


# They share a clone, which refused releases leave as it is; the one that succeeds comes last.
pytestmark = pytest.mark.xdist_group("release")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    clone = checkout(tmp_path_factory.mktemp("release"))
    git(clone, "init", "--quiet")
    commit(clone)
    return clone


def git(clone: Path, *words: str) -> str:
    who = ["-c", "user.name=A. Developer", "-c", "user.email=a@example.com"]
    command = ["git", *who, *words]
    return subprocess.run(command, cwd=clone, capture_output=True, text=True, check=True).stdout


def commit(clone: Path) -> None:
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "x")


def release(clone: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "tests/tools/release.py", *words]
    env = os.environ | {"PYTHONPATH": str(clone)}
    return subprocess.run(command, cwd=clone, env=env, capture_output=True, text=True, check=False)


def test_new_version_of_the_same_length_and_second_is_not_taken_from_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "module.py"
    monkeypatch.setattr(releases, "MODULE", module)
    printed = []
    for version in ("0.2.0", "0.3.0"):
        module.write_text(f'__version__ = "{version}"')
        os.utime(module, (0, 0))
        releases._change(module, lambda text: text)
        os.utime(module, (0, 0))
        command = [sys.executable, "-c", "import module; print(module.__version__)"]
        env = os.environ | {"PYTHONPATH": str(tmp_path)}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        printed.append(subprocess.check_output(command, cwd=tmp_path, env=env, text=True))

    assert printed == ["0.2.0\n", "0.3.0\n"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "usage: ./dev release VERSION [ADDRESS]"),
        (["0.2.0"], "dev: The first release needs the repository's address as well: "),
        (["0.4.0", ADDRESS], "dev: CHANGELOG.md has nothing to release: "),
    ],
)
def test_what_can_not_be_released_changes_nothing(
    clone: Path, words: list[str], error: str
) -> None:
    done = release(clone, *words)

    assert done.returncode
    assert done.stderr.startswith(error)
    assert git(clone, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("version", "address", "error"),
    [
        ("1", "", "'1' is not a version. Give one like 0.2.0."),
        ("0.2.0", "github.com/x/y", "'github.com/x/y' is not an address like https://"),
    ],
)
def test_what_is_no_version_and_no_address_is_told(version: str, address: str, error: str) -> None:
    with pytest.raises(releases.ReleaseError, match=f"^{re.escape(error)}"):
        releases.release(version, address)


def test_changes_that_are_not_committed_are_refused(clone: Path) -> None:
    (clone / "README.md").write_text("x")
    done = release(clone, "0.2.0", ADDRESS)

    assert done.stderr == ("dev: There are changes that are not committed. Commit or stash them.\n")
    assert (clone / "README.md").read_text() == "x"
    git(clone, "checkout", "--quiet", ".")


def test_release_is_built_of_a_version_and_an_address(clone: Path) -> None:
    done = release(clone, "0.2.0", ADDRESS)

    assert (done.returncode, done.stderr) == (0, "")
    wheel, sdist = "tmux_debug_mcp-0.2.0-py3-none-any.whl", "tmux_debug_mcp-0.2.0.tar.gz"
    assert done.stdout.startswith(f"dist has {wheel} and {sdist}.\n")
    entry = json.loads((clone / "server.json").read_text())
    assert entry["name"] == "io.github.somebody/tmux-debug-mcp"
    changelog_file = clone / "CHANGELOG.md"
    assert re.search(r"\n## \[0\.2\.0\] - \d{4}-\d\d-\d\d\n", changelog_file.read_text())
    with tarfile.open(clone / "dist" / sdist) as archive:
        pages = {
            name: archive.extractfile(f"tmux_debug_mcp-0.2.0/{name}").read().decode()  # type: ignore[union-attr]
            for name in ("CHANGELOG.md", "README.md")
        }
    assert "Unreleased" not in pages["CHANGELOG.md"]
    # A package index shows the README alone.
    assert re.findall(r"\]\((?!https://)", pages["README.md"]) == []
    assert f"]({ADDRESS}/blob/v0.2.0/docs/limits.md)" in pages["README.md"]
    assert f"]({ADDRESS}/raw/v0.2.0/docs/demo.png)" in pages["README.md"]
    assert "](docs/limits.md)" in (clone / "README.md").read_text()

    # What it says to type next publishes the commit and the tag.
    [line] = [line for line in done.stdout.splitlines() if "git push" in line]
    remote = clone.parent / "remote.git"
    git(clone, "init", "--quiet", "--bare", str(remote))
    git(clone, "remote", "add", "origin", str(remote))
    git(clone, "push", "--quiet", "--set-upstream", "origin", "HEAD")
    for name, value in (("name", "A. Developer"), ("email", "a@example.com")):
        git(clone, "config", f"user.{name}", value)
    subprocess.run(["sh", "-ec", line], cwd=clone, capture_output=True, check=True)
    head = git(clone, "rev-parse", "HEAD")
    assert git(clone, "rev-parse", "@{upstream}") == head
    assert git(remote, "rev-parse", "v0.2.0^{commit}") == head

    # The next one knows the address.
    shutil.rmtree(clone / "dist")
    refused = release(clone, "0.3.0")
    assert refused.stderr == (
        "dev: CHANGELOG.md has nothing to release: begin a section with "
        "'## [0.3.0] - Unreleased'.\n"
    )
    assert git(clone, "status", "--porcelain") == ""
    new = "## [0.3.0] - Unreleased\n\n- New.\n\n## [0.2.0]"
    changelog_file.write_text(changelog_file.read_text().replace("## [0.2.0]", new))
    commit(clone)
    assert release(clone, "0.3.0").returncode == 0
    project = (clone / "pyproject.toml").read_text()
    assert f'Changelog = "{ADDRESS}/blob/v0.3.0/CHANGELOG.md"' in project
    assert (clone / "README.md").read_text().count("mcp-name") == 1
