"""`./dev release VERSION [ADDRESS]`: makes and checks the files of a release, in `dist`.

The version, the repository's address and the date are written into the working tree, and the
distributions are built from that. Nothing is committed or uploaded. What fails is undone.
"""

import datetime as dt
import email
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import registry

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
MODULE = ROOT / "tmux_debug_mcp" / "__init__.py"
_BUILD = (
    "import sys; from flit_core import buildapi; "
    "print(buildapi.build_wheel(sys.argv[1])); print(buildapi.build_sdist(sys.argv[1]))"
)
_LINK = re.compile(r"\]\((?!https://)(.+?)\)")
_URLS = re.compile(r"\n\[project\.urls\]\n(?:.+\n)*")
_NEXT = """\
dist has {files}.
Look at the changes (git diff), then:

  git commit -am "Release {version}" && git tag -m {version} v{version} && git push --follow-tags
  .venv/bin/uv publish dist/*
  mcp-publisher publish"""


class ReleaseError(Exception):
    """Raised when there is no release; the text says why, and what to do."""


def release(version: str, address: str) -> str:
    """Make a release, and return what to do next.

    Raises:
        ReleaseError: It can't be made. The working tree is as it was, and has no `dist`.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ReleaseError(f"'{version}' is not a version. Give one like 0.2.0.")
    address = address or registry.address()
    if not address:
        raise ReleaseError(
            "The first release needs the repository's address as well: "
            f"./dev release {version} https://github.com/OWNER/{registry.PACKAGE}"
        )
    if not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", address):
        raise ReleaseError(f"'{address}' is not an address like https://github.com/OWNER/NAME.")
    if _run("git", "status", "--porcelain"):
        raise ReleaseError("There are changes that are not committed. Commit or stash them.")
    if DIST.exists():
        raise ReleaseError("dist is there from another build. Remove it.")
    try:
        _stamp(version, address)
        DIST.mkdir()
        names = _build(version, address)
        _check(version, address, DIST / names[0])
    except BaseException:
        _run("git", "checkout", "--quiet", ".")
        _forget_compiled(MODULE)
        shutil.rmtree(DIST, ignore_errors=True)
        raise
    return _NEXT.format(files=" and ".join(names), version=version)


def _stamp(version: str, address: str) -> None:
    """Write the version, the address and the date where they belong."""
    urls = f'\n[project.urls]\nRepository = "{address}"\n'
    urls += f'Changelog = "{address}/blob/v{version}/CHANGELOG.md"\n'
    today = dt.datetime.now(dt.UTC).date()

    def with_urls(text: str) -> str:
        return _URLS.sub("", text).replace(
            "\n[project.optional-dependencies]", f"{urls}\n[project.optional-dependencies]", 1
        )

    def with_date(text: str) -> str:
        begins, dated = f"## [{version}] - Unreleased\n", f"## [{version}] - {today}\n"
        if begins not in text:
            raise ReleaseError(
                f"CHANGELOG.md has nothing to release: begin a section with '{begins.strip()}'."
            )
        return text.replace(begins, dated)

    _change(MODULE, lambda _text: _with_version(_text, version))
    _change(ROOT / "pyproject.toml", with_urls)
    _change(ROOT / "CHANGELOG.md", with_date)
    mark = f"<!-- mcp-name: {registry.name()} -->\n"
    _change(ROOT / "README.md", lambda text: re.sub(r"<!-- mcp-name: .*\n", "", text) + mark)
    for script in ("registry.py", "manual.py"):
        _run(sys.executable, f"tests/tools/{script}")


def _build(version: str, address: str) -> list[str]:
    """Build into `dist`, and return the names of the files.

    A package index shows the README alone, so there its links lead to the repository.
    """
    readme = ROOT / "README.md"
    text = readme.read_text()

    def with_address(link: re.Match[str]) -> str:
        kind = "raw" if link[1].endswith(".png") else "blob"
        return f"]({address}/{kind}/v{version}/{link[1]})"

    readme.write_text(_LINK.sub(with_address, text))
    try:
        return _run(sys.executable, "-c", _BUILD, str(DIST)).split()
    finally:
        readme.write_text(text)


def _with_version(text: str, version: str) -> str:
    return re.sub(r'(?<=^__version__ = ").*(?="$)', version, text, flags=re.MULTILINE)


def _change(file: Path, change: Callable[[str], str]) -> None:
    file.write_text(change(file.read_text()))
    if file == MODULE:
        _forget_compiled(file)


def _forget_compiled(file: Path) -> None:
    """Make Python compile a file again, even if its size and the second of its change stay."""
    Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)


def _check(version: str, address: str, wheel: Path) -> None:
    """Check what was built."""
    with zipfile.ZipFile(wheel) as archive:
        [path] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(path))
    entry = json.loads(registry.ENTRY.read_text())
    run = f"import sys; sys.path.insert(0, {str(wheel)!r}); "
    run += "from tmux_debug_mcp.command.serve import main; "
    found = {
        "wheel's version": (metadata["Version"], version),
        "wheel's address": (f"Repository, {address}" in metadata.get_all("Project-URL", []), True),
        "entry's address": (entry["repository"]["url"], address),
        "entry's version": (entry["version"], version),
        "entry's name in the description": (
            f"mcp-name: {entry['name']} " in metadata.get_payload(),
            True,
        ),
        "command's version": (
            _run(sys.executable, "-I", "-c", f"{run}sys.argv[1:] = ['--version']; main()"),
            f"{registry.PACKAGE} {version}",
        ),
    }
    for name, (is_now, should_be) in found.items():
        if is_now != should_be:
            raise ReleaseError(f"The {name} is {is_now!r} and should be {should_be!r}.")
    _run(sys.executable, "-m", "pytest", "-q", "tests/test_registry.py", "tests/test_manual.py")


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"{' '.join(command[:3])} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def main(words: Sequence[str]) -> int:
    """Make a release; return the exit status."""
    if len(words) not in (1, 2):
        print("usage: ./dev release VERSION [ADDRESS]", file=sys.stderr)
        return 2
    version, address = [*words, ""][:2]
    try:
        print(release(version, address))
    except ReleaseError as error:
        print(f"dev: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
