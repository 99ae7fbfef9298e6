"""Writes audits as one page of HTML, which needs nothing else and loads nothing.

A line of an audit may hold anything that a pane has printed. It is in the page as JSON within
script elements that are not run, with `<` escaped, and the page's own script shows it as text only.
The policy of the page lets it run that script and load nothing.
"""

import base64
import contextlib
import hashlib
import html
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import IO, Any

import orjson

from tmux_debug_mcp.linux import files
from tmux_debug_mcp.sockets.servers import CommandError
from tmux_debug_mcp.vt.printable import visible

from .audits import OK, Record
from .filters import MAKING
from .logs import Cast
from .phrases import describe

# Records in each part of the page. A part is parsed when one of its records is shown.
_PER_PART = 500
# What is embedded of captures and of recordings, all of each together.
MAX_CAPTURES_BYTES = 32 << 20
MAX_CASTS_BYTES = 32 << 20
# Longer phrases and errors are cut; the record has all of them.
_MAX_TEXT = 2000
# Moments at which a pane has printed, as marks in its lane.
_MAX_MARKS = 5000
_ASSETS = resources.files(__package__) / "assets"


@dataclass(slots=True)
class _Columns:
    """What the page has of all calls at once, a list for each fact.

    Attributes:
        lanes: The panes, each with its name.
        texts: Phrases and errors, each once; the first one is empty.
        began: When calls began, in milliseconds since the epoch.
        took: How long they took in milliseconds, -1 where it is not on record.
        lane: The places of their panes in `lanes`.
        call: The places of their phrases in `texts`.
        error: The places of their errors, or of how else they failed; 0 for calls that did not.
        captures: The numbers of captures, by the numbers of calls.
    """

    lanes: list[dict[str, Any]] = field(default_factory=list)
    texts: list[str] = field(default_factory=lambda: [""])
    began: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    lane: list[int] = field(default_factory=list)
    call: list[int] = field(default_factory=list)
    error: list[int] = field(default_factory=list)
    captures: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> bytes:
        """Return what the page's script reads."""
        clock = min(self.began, default=0.0)
        ends = [at + max(0.0, took) for at, took in zip(self.began, self.took, strict=True)]
        return orjson.dumps(
            {
                "lanes": self.lanes,
                "texts": self.texts,
                "began": [round(at - clock, 1) for at in self.began],
                "took": [round(took, 1) for took in self.took],
                "lane": self.lane,
                "call": self.call,
                "error": self.error,
                "captures": self.captures,
                "clock": clock,
                "duration": max(ends, default=clock) - clock,
                "failures": sum(1 for error in self.error if error),
                "perPart": _PER_PART,
            }
        )


@dataclass(frozen=True, slots=True)
class Extras:
    """What is kept beside audits.

    Attributes:
        captures: The directory of full captures, None without one.
        cast_of: Returns the recording of a pane of a server run, None if there is none.
    """

    captures: Path | None = None
    cast_of: Callable[[str, str], Cast | None] | None = None


def write(records: Iterable[Record], out: Path, title: str, extras: Extras) -> int:
    """Write a page.

    Args:
        records: What to show, ordered by time.
        out: The file. It has the page when that is complete: a regular file is replaced, anything
            else, such as a pipe or what a symbolic link leads to, is written to.
        title: The title of the page.
        extras: What is kept beside the audits.

    Returns:
        The number of calls in the page.

    Raises:
        CommandError: The file can't be written.
    """
    try:
        with _written(out) as file:
            page = _Page(file, extras)
            page.write(records, title)
    except OSError as error:
        raise CommandError(
            f"The page {out} can't be written: {error.strerror}. Name another file."
        ) from error
    return page.count


@contextlib.contextmanager
def _written(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file whose content is at the path once the block has ended without an exception.

    A regular file is replaced. Whatever else is there stays what it is, and is written to.
    """
    try:
        is_replaced = stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        is_replaced = True
    if not is_replaced:
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            with path.open("wb") as target:
                shutil.copyfileobj(file, target)
        return
    directory = path.absolute().parent
    with tempfile.NamedTemporaryFile(dir=directory, prefix=".page-", delete=False) as file:
        try:
            yield file
            file.flush()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


class _Page:
    """A page that is being written.

    Args:
        file: Where to.
        extras: What is kept beside the audits.

    Attributes:
        count: The number of calls in it.
    """

    def __init__(self, file: IO[bytes], extras: Extras) -> None:
        self.count = 0
        self._file = file
        self._extras = extras
        self._columns = _Columns()
        # The places of panes, by the run and the pane's id, and by the run and its name.
        self._lanes: dict[tuple[str, str], int] = {}
        self._named: dict[tuple[str, str], int] = {}
        self._texts = {"": 0}
        self._part: list[bytes] = []
        self._capture_bytes = 0
        self._cast_bytes = 0
        self._casts = 0

    def write(self, records: Iterable[Record], title: str) -> None:
        """Write the whole page."""
        scripts = [_asset("page.js")]
        player = [_asset("asciinema-player.min.js")]
        style = _asset("page.css") + "\n" + _asset("asciinema-player.css")
        head = _asset("page.html")
        parts = {
            "POLICY": _policy([*player, *scripts]),
            "TITLE": html.escape(visible(title)),
            "STYLE": style,
        }
        # In one pass: a title may look like another part's place.
        head = re.sub("@([A-Z]+)@", lambda place: parts[place[1]], head)
        self._file.write(head.encode())
        for record in records:
            self._add(record)
        self._end_part()
        self._add_casts()
        self._data("data", self._columns.as_json())
        # The player only where there is something to play.
        for script in [*(player if self._casts else []), *scripts]:
            self._file.write(f"<script>{script}</script>\n".encode())
        self._file.write(b"</body>\n</html>\n")

    def _add(self, record: Record) -> None:
        columns = self._columns
        lane = self._lane(record)
        columns.began.append(record.began_at * 1000)
        took = -1.0 if record.duration_s is None else record.duration_s * 1000
        columns.took.append(took)
        columns.lane.append(lane)
        columns.call.append(self._text(describe(record)))
        error = "" if record.result == OK else record.error or record.result
        columns.error.append(self._text(error))
        if record.capture:
            self._add_capture(record.capture)
        self._part.append(record.data.strip())
        self.count += 1
        if len(self._part) == _PER_PART:
            self._end_part()

    def _lane(self, record: Record) -> int:
        """Return the place of the pane that a call concerned, and make a lane for a new one."""
        run = record.run
        pane = record.pane if len(record.panes) == 1 else ""
        # A call that failed has the pane as the caller gave it, perhaps by name.
        number = self._lanes.get((run, pane), self._named.get((run, pane)))
        if number is None:
            number = len(self._columns.lanes)
            self._lanes[run, pane] = number
            self._columns.lanes.append({"name": visible(pane) or "server", "key": (run, pane)})
        name = record.fields.get("name")
        if pane and record.is_answered and record.tool in MAKING and isinstance(name, str):
            self._columns.lanes[number]["name"] = visible(name)
            self._named[run, name] = number
        return number

    def _text(self, text: str) -> int:
        if len(text) > _MAX_TEXT:
            text = text[:_MAX_TEXT] + "…"
        text = visible(text)
        if text not in self._texts:
            self._texts[text] = len(self._columns.texts)
            self._columns.texts.append(text)
        return self._texts[text]

    def _end_part(self) -> None:
        if self._part:
            number = (self.count - 1) // _PER_PART
            self._data(f"part-{number}", b"[" + b",".join(self._part) + b"]")
            self._part = []

    def _add_capture(self, name: str) -> None:
        """Embed the text that a call returned, if it was kept and there is room."""
        data = _capture(self._extras.captures, name)
        if data is None or self._capture_bytes + len(data) > MAX_CAPTURES_BYTES:
            return
        self._capture_bytes += len(data)
        number = len(self._columns.captures)
        self._columns.captures[str(self.count)] = number
        self._data(f"capture-{number}", orjson.dumps(data.decode(errors="replace")))

    def _add_casts(self) -> None:
        """Embed the recordings of panes, as far as there is room."""
        for lane in self._columns.lanes:
            run, pane = lane.pop("key")
            found = None
            if self._extras.cast_of and pane:
                found = self._extras.cast_of(run, pane)
            if found is None:
                continue
            if self._cast_bytes + len(found.text) > MAX_CASTS_BYTES:
                continue
            self._cast_bytes += len(found.text)
            facts = {"text": found.text, "began_at": found.began_at}
            self._data(f"cast-{self._casts}", orjson.dumps(facts))
            lane["cast"] = self._casts
            lane["printed"] = found.marks(_MAX_MARKS)
            self._casts += 1

    def _data(self, name: str, json: bytes) -> None:
        self._file.write(f'<script type="application/json" id="{name}">'.encode())
        # Within JSON it can only be in strings.
        self._file.write(json.replace(b"<", rb"\u003c"))
        self._file.write(b"</script>\n")


def _capture(directory: Path | None, name: str) -> bytes | None:
    """Return a full capture, None if it is not there."""
    if directory is None or os.path.basename(name) != name or "\0" in name:
        return None
    try:
        with open(files.open_file(str(directory / name)), "rb") as file:
            return file.read(MAX_CAPTURES_BYTES + 1)
    except (OSError, UnicodeEncodeError):
        return None


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _policy(scripts: Iterable[str]) -> str:
    """Return the content security policy: these scripts, styles in the page, and nothing else."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes} 'wasm-unsafe-eval'; style-src 'unsafe-inline'; "
        "font-src data:; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
