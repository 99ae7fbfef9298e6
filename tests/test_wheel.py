"""The wheel has all that the package needs, and says whose work that is."""

import configparser
import email
import importlib
import zipfile
from pathlib import Path

import pytest

flit = pytest.importorskip(
    "flit_core.buildapi", reason="flit_core is not installed; ./dev setup installs it"
)
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    directory = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return zipfile.ZipFile(directory / flit.build_wheel(str(directory)))


def test_every_file_of_the_package_is_in_it(wheel: zipfile.ZipFile) -> None:
    package = ROOT / "tmux_debug_mcp"
    files = {
        str(path.relative_to(ROOT))
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }

    names = ("py.typed", "panes/pane.sh", "tmux/tmux.conf", "vt/fonts/unifont.hex.xz")
    assert {f"tmux_debug_mcp/{name}" for name in names} <= files
    assert files <= set(wheel.namelist())


def test_both_commands_are_in_it(wheel: zipfile.ZipFile) -> None:
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

    assert metadata["License-Expression"] == (
        "MIT AND Bitstream-Vera AND OFL-1.1 AND Apache-2.0"
    )
    licences = metadata.get_all("License-File") or []
    assert sorted(licences) == [
        "LICENSE",
        "tmux_debug_mcp/vt/fonts/LICENSE-DejaVu",
        "tmux_debug_mcp/vt/fonts/LICENSE-Unifont",
    ]
    for licence in licences:
        assert name.replace("METADATA", f"licenses/{licence}") in wheel.namelist()
