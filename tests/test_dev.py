"""./dev stops at the first thing that fails, with a sentence that says what to do."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
IS_ROOT = os.geteuid() == 0
SUDO, AS_ROOT = ("", "") if IS_ROOT else ("sudo ", " as root")
# What any system has, and nothing of what `dev` may have to install.
BASE = ("bash", "env", "cat", "dirname", "sed", "sha256sum", "rm")
# A pip that records its arguments, and writes the commands of a package.
PIP = """echo "$*" >>calls
for one in tmux-debug tmux-debug-mcp; do
    cat .venv/bin/pip >.venv/bin/$one
    /bin/chmod +x .venv/bin/$one
done"""
# What pip writes as the commands of a package, by the library that it has for this.
INSTALLS = """
import sys
from pip._vendor.distlib.scripts import ScriptMaker
sys.executable = sys.argv[1]
maker = ScriptMaker(None, ".venv/bin")
maker.set_mode = maker.clobber = True
maker.variants = {""}
maker.make_multiple(["tmux-debug = sys:exit", "tmux-debug-mcp = sys:exit"])
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a directory with all the programs that there are."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in BASE:
        (programs / name).symlink_to(shutil.which(name) or f"{name} is missing")
    return programs


def add(programs: Path, name: str, script: str = "exit 0") -> None:
    (programs / name).write_text(f"#!/bin/sh\n{script}\n")
    (programs / name).chmod(0o755)


def add_python(programs: Path) -> None:
    (programs / "python3").symlink_to(os.path.realpath(sys.executable))


def add_environments(programs: Path, pip: str) -> None:
    """Add a tmux, and a Python that makes environments with such a pip."""
    add(programs, "tmux")
    for name in ("mkdir", "ln"):
        (programs / name).symlink_to(shutil.which(name) or f"{name} is missing")
    add(programs, "pip", pip)
    made = f"mkdir -p .venv/bin && ln -s {programs}/pip .venv/bin/pip"
    python = f'exec {shlex.quote(sys.executable)} "$@"'
    add(programs, "python3", f'case "$1 $2" in "-m venv") {made} ;; *) {python} ;; esac')


def dev(
    programs: Path, directory: Path, *arguments: str, **env: str
) -> "subprocess.CompletedProcess[str]":
    directory.mkdir()
    for name in ("dev", "pyproject.toml"):
        shutil.copy(ROOT / name, directory)
    return again(programs, directory, *arguments, **env)


def again(
    programs: Path, directory: Path, *arguments: str, **env: str
) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": str(programs), "HOME": str(directory), **env}
    return subprocess.run(
        [str(programs / "bash"), "dev", *arguments],
        cwd=directory, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("manager", "sudo", "told"),
    [
        (
            None,
            True,
            (
                "dev: missing: python3 python3-venv tmux (Debian's names). "
                "Install them with your system's package manager.\n"
            ),
        ),
        (
            "apt-get",
            True,
            "dev: installing python3 python3-venv tmux\n"
            "dev: missing: python3. Install it: apt-get update && apt-get install python3\n"
            if IS_ROOT
            else "dev: missing: python3 python3-venv tmux. Install them: "
            "sudo apt-get update && sudo apt-get install python3 python3-venv tmux\n",
        ),
        (
            "dnf",
            True,
            f"dev: missing: python3 tmux. Install them: {SUDO}dnf install python3 tmux\n",
        ),
        (
            "dnf",
            False,
            f"dev: missing: python3 tmux. Install them{AS_ROOT}: dnf install python3 tmux\n",
        ),
    ],
    ids=["no manager", "apt-get", "dnf", "without sudo"],
)
def test_all_that_is_missing_is_told_at_once(
    programs: Path, tmp_path: Path, manager: str | None, told: str, *, sudo: bool
) -> None:
    if manager:
        add(programs, manager)
    if sudo:
        add(programs, "sudo", "exit 1")
    done = dev(programs, tmp_path / "clone", "demo")

    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)
    assert not (tmp_path / "clone" / ".venv").exists()


def test_python_that_is_too_old_is_an_error(programs: Path, tmp_path: Path) -> None:
    add(programs, "python3", "case $2 in *platform*) echo 3.9.2 ;; *) exit 1 ;; esac")
    done = dev(programs, tmp_path / "clone", "demo")

    assert (done.returncode, done.stderr) == (
        1,
        "dev: Python 3.11 or newer is needed, and python3 is 3.9.2.\n",
    )


def test_package_that_can_not_be_installed_ends_it(programs: Path, tmp_path: Path) -> None:
    add_python(programs)
    add(programs, "apt-get", "echo 'E: no such package' >&2; exit 100")
    done = dev(programs, tmp_path / "clone", "demo")

    wanted = (
        "dev: installing tmux\nE: no such package\n"
        "dev: apt-get could not install tmux; it says why above.\n"
        if IS_ROOT
        else "dev: missing: tmux. Install it as root: apt-get update && apt-get install tmux\n"
    )
    assert (done.returncode, done.stderr) == (1, wanted)
    assert not (tmp_path / "clone" / ".venv").exists()


def test_packages_have_the_names_of_the_system(programs: Path, tmp_path: Path) -> None:
    add_python(programs)
    add(programs, "dnf")
    done = dev(programs, tmp_path / "clone", "demo")

    assert done.returncode == 1
    assert done.stderr == f"dev: missing: tmux. Install it{AS_ROOT}: dnf install tmux\n"


def test_packages_that_pip_can_not_install_leave_nothing_that_looks_finished(
    programs: Path, tmp_path: Path
) -> None:
    add_environments(programs, "echo 'pip: no index' >&2; exit 1")
    done = dev(programs, tmp_path / "clone", "demo")

    assert done.returncode == 1
    assert done.stderr == (
        "dev: making .venv with the package (100 MB)\npip: no index\n"
        "dev: pip could not install what .venv needs; it says why above.\n"
    )
    assert not (tmp_path / "clone" / ".venv" / "made-from").exists()


def test_demo_installs_what_it_needs_and_tests_the_rest(programs: Path, tmp_path: Path) -> None:
    add_environments(programs, PIP)
    clone = tmp_path / "clone"

    assert dev(programs, clone, "setup").stderr == (
        "dev: making .venv with the package (100 MB)\n"
        "dev: ready. Next: .venv/bin/tmux-debug config CLIENT --write, or "
        ".venv/bin/tmux-debug --help\n"
    )
    assert again(programs, clone, "setup").stderr == ""
    assert again(programs, clone, "bench").stderr.startswith("dev: adding the tools of ")
    assert again(programs, clone, "setup").stderr == ""
    assert "adding" not in again(programs, clone, "bench").stderr
    options = "install -qq --disable-pip-version-check --editable"
    assert (clone / "calls").read_text().splitlines() == [
        f"{options} .[screenshot]",
        f"{options} .[dev]",
    ]


def test_programs_that_a_person_has_to_install_are_told_before_pip_adds_tools(
    programs: Path, tmp_path: Path
) -> None:
    add_environments(programs, PIP)
    done = dev(programs, tmp_path / "clone", "test")

    assert done.returncode == 1
    [made, told] = done.stderr.splitlines()
    assert made == "dev: making .venv with the package (100 MB)"
    assert told.startswith("dev: missing: dash zsh ")
    [installed] = (tmp_path / "clone" / "calls").read_text().splitlines()
    assert installed.endswith(" .[screenshot]")


@pytest.mark.parametrize("name", ["clone", "it's a clone"])
def test_commands_run_whatever_the_environment_says_to_python(
    programs: Path, tmp_path: Path, name: str
) -> None:
    bin_directory = tmp_path / name / ".venv" / "bin"
    python, own = shlex.quote(sys.executable), shlex.quote(str(bin_directory / "python3"))
    real = shlex.quote(os.path.realpath(sys.executable))
    add_environments(programs, f"ln -sf {real} {own}; {python} -c {shlex.quote(INSTALLS)} {own}")
    assert dev(programs, tmp_path / name, "setup").returncode == 0

    for command in ("tmux-debug", "tmux-debug-mcp"):
        environment = {"PATH": os.environ["PATH"], "PYTHONHOME": "/nowhere"}
        done = subprocess.run([str(bin_directory / command)], env=environment, check=False)
        assert done.returncode == 0


@pytest.mark.parametrize("name", ['a "clone"', "a$clone", "a\\clone", "a`clone"])
def test_path_that_pip_breaks_at_is_refused(programs: Path, tmp_path: Path, name: str) -> None:
    done = dev(programs, tmp_path / name, "demo")

    assert done.returncode == 1
    assert f": {tmp_path / name}\n" in done.stderr
    assert done.stderr.endswith("dev: Move it to another path.\n")


def test_system_of_another_release_is_not_made_by_an_ordinary_user(
    programs: Path, tmp_path: Path
) -> None:
    if IS_ROOT:
        pytest.skip("root makes one: ./dev test-on")
    done = dev(programs, tmp_path / "clone", "test-on", "trixie")

    assert done.returncode == 1
    assert "SKIPPED: test-on trixie makes a system, for which it must be root." in done.stderr


@pytest.fixture
def with_tests(programs: Path) -> Path:
    """Return the directory of programs, with all that tests need, and a pytest that is none."""
    names = "dash zsh fish busybox curl dialog git htop less top vim"
    needed = names.split()
    for name in needed:
        add(programs, name)
    add(programs, "nproc", "echo 2")
    status = 'case " $* " in *" not alone "*) exit "$TOGETHER" ;; *) exit "$ALONE" ;; esac'
    add(programs, "python", f'echo "$*" >>calls\n{status}')
    return programs


@pytest.mark.parametrize(
    ("together", "alone", "status"),
    [(0, 0, 0), (1, 0, 1), (0, 1, 1), (1, 5, 1), (5, 1, 1), (0, 5, 0), (5, 0, 0), (5, 5, 5)],
)
def test_tests_that_need_the_machine_for_themselves_come_last_and_count(
    with_tests: Path, tmp_path: Path, together: int, alone: int, status: int
) -> None:
    statuses = {"TOGETHER": str(together), "ALONE": str(alone), "DEV_IS_SET_UP": "1"}
    done = dev(with_tests, tmp_path / "clone", "test", "tests/unit", "-x", **statuses)

    assert (done.returncode, done.stderr) == (status, "")
    assert (tmp_path / "clone" / "calls").read_text().splitlines() == [
        "-m pytest -n 4 --dist loadgroup -m not alone tests/unit -x",
        "-m pytest --dist loadgroup -m alone tests/unit -x -n 2",
    ]


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (["--co"], "-m pytest -n 4 --dist loadgroup -m not alone --co"),
        (["-m", "alone"], "-m pytest -n 4 --dist loadgroup -m alone"),
    ],
    ids=["wrong usage", "markers"],
)
def test_tests_are_started_once_with_wrong_arguments_or_a_choice_of_markers(
    with_tests: Path, tmp_path: Path, words: list[str], call: str
) -> None:
    statuses = {"TOGETHER": "4", "ALONE": "4", "DEV_IS_SET_UP": "1"}
    done = dev(with_tests, tmp_path / "clone", "test", *words, **statuses)

    assert done.returncode == 4
    assert (tmp_path / "clone" / "calls").read_text().splitlines() == [call]
