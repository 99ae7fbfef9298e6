"""The source distribution is the whole project: it passes its own tests, and the README is true."""

import os
import subprocess
from pathlib import Path

import pytest
from packages import checkout, environment, install, tracked

flit = pytest.importorskip(
    "flit_core.buildapi", reason="flit_core is not installed; ./dev setup installs it"
)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a source distribution made of what git has."""
    directory = tmp_path_factory.mktemp("sdist")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(checkout(tmp_path_factory.mktemp("checkout")))
        return directory / str(flit.build_sdist(str(directory)))


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory that the source distribution unpacks to."""
    directory = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["tar", "-xf", sdist, "-C", directory], check=True)
    [unpacked] = directory.iterdir()
    return unpacked


@pytest.fixture(scope="module")
def programs(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs of an environment that the source distribution is installed in."""
    wanted = ("pytest", "pytest-xdist", "hypothesis", "flit_core")
    return install(tmp_path_factory.mktemp("installed") / "env", f"{sdist}[screenshot]", *wanted)


def dev(unpacked: Path, programs: Path, *words: str) -> str:
    """Run a command of the README in the unpacked directory, with these programs.

    What `./dev` would set up is there, so that it makes no environment of its own.
    """
    done = subprocess.run(
        ["./dev", *words],
        cwd=unpacked,
        env=environment() | {"DEV_IS_SET_UP": "1", "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_it_has_all_that_git_has(unpacked: Path) -> None:
    files = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}

    assert files - {"PKG-INFO"} == set(tracked())


def test_demo_runs_in_it(unpacked: Path, programs: Path) -> None:
    assert "TypeError: can't multiply sequence" in dev(unpacked, programs, "demo")


def test_it_passes_its_tests_that_need_nothing_but_itself(unpacked: Path, programs: Path) -> None:
    tests = ("tests/unit/test_keys.py", "tests/unit/test_definitions.py", "tests/test_readme.py")

    assert " passed" in dev(unpacked, programs, "test", "-q", *tests)
    # All others find what they import and read.
    assert "/test_" in dev(unpacked, programs, "test", "-q", "-n", "0", "--collect-only", "tests")
