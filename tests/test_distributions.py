"""The source distribution is the whole project, and the wheel that it makes runs once installed.

Whoever has the source distribution has what git has, so the tests that pass in a checkout pass in
it. The wheel has all that the package needs, and says whose work that is.
"""

import configparser
import email
import importlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import manual
import pytest
from mcp import Client, StdioServerParameters
from packages import checkout, install, run_uv, tracked
from packages import environment as clean_environment
from support import texts

from tmux_debug_mcp import __version__
from tmux_debug_mcp.tools import debug

flit = pytest.importorskip(
    "flit_core.buildapi", reason="flit_core is not installed; ./dev test installs it"
)
# They share the distributions, and the environment that these are installed into.
pytestmark = pytest.mark.xdist_group("distributions")

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory that the source distribution unpacks to."""
    directory = tmp_path_factory.mktemp("sdist")
    has_git = (ROOT / ".git").exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(checkout(tmp_path_factory.mktemp("checkout")) if has_git else ROOT)
        sdist = directory / str(flit.build_sdist(str(directory)))
    unpacked = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["tar", "-xf", sdist, "-C", unpacked], check=True)
    [project] = unpacked.iterdir()
    return project


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Return the wheel that the source distribution makes."""
    directory = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(unpacked)
        return zipfile.ZipFile(directory / flit.build_wheel(str(directory)))


def test_source_distribution_has_all_that_git_has(unpacked: Path) -> None:
    files = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}

    assert files - {"PKG-INFO"} == set(tracked())


def test_every_file_of_the_package_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    package = ROOT / "tmux_debug_mcp"
    files = {
        str(path.relative_to(ROOT))
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }

    names = ("py.typed", "panes/pane.sh", "tmux/tmux.conf", "pictures/fonts/unifont.hex.xz")
    assert {f"tmux_debug_mcp/{name}" for name in names} <= files
    assert files <= set(wheel.namelist())


def test_both_commands_are_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    scripts = configparser.ConfigParser()
    scripts.read_string(wheel.read(name).decode())

    assert set(scripts["console_scripts"]) == {"tmux-debug", "tmux-debug-mcp"}
    for entry in scripts["console_scripts"].values():
        module, function = entry.split(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_licences_are_those_of_the_code_and_the_fonts(wheel: zipfile.ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = email.message_from_bytes(wheel.read(name))

    assert metadata["License-Expression"] == ("MIT AND Bitstream-Vera AND OFL-1.1 AND Apache-2.0")
    licences = metadata.get_all("License-File") or []
    assert sorted(licences) == [
        "LICENSE",
        "tmux_debug_mcp/pictures/fonts/LICENSE-DejaVu",
        "tmux_debug_mcp/pictures/fonts/LICENSE-Unifont",
        "tmux_debug_mcp/viewing/assets/LICENSE-asciinema-player",
    ]
    for licence in licences:
        assert name.replace("METADATA", f"licenses/{licence}") in wheel.namelist()


@pytest.fixture(scope="module")
def programs(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs of an environment that has the wheel, and what it requires, alone."""
    return install(tmp_path_factory.mktemp("installed") / "env", str(wheel.filename))


@pytest.fixture(scope="module")
def of_uvx(wheel: zipfile.ZipFile) -> str:
    """Return what the server prints of its version when uvx runs it."""
    wheels = str(wheel.filename)
    python = ("--python", sys.executable)
    return run_uv(
        "tool", "run", "--quiet", *python, "--from", wheels, "tmux-debug-mcp", "--version"
    )


def test_uvx_runs_the_server_without_an_installation(of_uvx: str) -> None:
    assert of_uvx == f"tmux-debug-mcp {__version__}\n"


def test_uvx_runs_the_newest_state_of_a_clone(tmp_path: Path) -> None:
    clone = checkout(tmp_path / "clone")
    words = ["tool", "run", "--quiet", "--python", sys.executable, "--from", str(clone)]
    prints = "import tmux_debug_mcp; print(tmux_debug_mcp.__doc__)"
    assert "edited" not in run_uv(*words, "python", "-P", "-c", prints)

    package = clone / "tmux_debug_mcp" / "__init__.py"
    package.write_text(package.read_text().replace('"""', '"""edited: ', 1))

    assert "edited: " in run_uv(*words, "python", "-P", "-c", prints)
    name = "viewing/assets/page.css"
    with (package.parent / name).open("a") as file:
        file.write("edited")
    prints = f"import tmux_debug_mcp as it; print(open(it.__path__[0] + '/{name}').read()[-6:])"
    assert run_uv(*words, "python", "-P", "-c", prints) == "edited\n"
    # What uvx puts on PATH is not for panes.
    paths = (
        "import os, tmux_debug_mcp.own_environment as own;"
        "print(os.environ['PATH']); print(own.of_project(os.environ)['PATH'])"
    )
    ours, projects = run_uv(*words, "python", "-P", "-c", paths).splitlines()
    assert ours.partition(":")[2] == projects


@pytest.mark.parametrize("program", ["tmux-debug", "tmux-debug-mcp"])
def test_both_commands_run_where_only_the_wheel_is_installed(programs: Path, program: str) -> None:
    command = [str(programs / program), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout == f"{program} {__version__}\n"


async def test_installed_server_serves_a_client(
    programs: Path, environment: dict[str, str]
) -> None:
    server = StdioServerParameters(command=str(programs / "tmux-debug-mcp"), env=environment)
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        script = {"command": "echo it runs; tmux-debug ps --names"}
        result = await client.call_tool("tmux_run", script)

    assert [tool.name for tool in tools] == [tool.name for tool in debug.TOOLSET.tools]
    assert texts(result)[0] == "it runs\ndebug-1\n"


_TYPED = """\
from tmux_debug_mcp.vt.steps import read
reveal_type(read("Enter").text)
"""


def test_mypy_sees_the_types_of_what_is_installed(programs: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed; ./dev test installs it")
    (tmp_path / "program.py").write_text(_TYPED)
    words = ["--strict", f"--python-executable={programs / 'python'}", "program.py"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", f"--cache-dir={os.devnull}", *words],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert 'Revealed type is "str"' in done.stdout.replace("builtins.", ""), done.stdout
    assert "Success" in done.stdout


def test_manual_pages_and_completions_are_installed(programs: Path) -> None:
    for path, text in manual.files().items():
        assert (programs.parent / path).read_text() == text
