"""Writes audits as one page of HTML, which needs nothing else and loads nothing.

A line of an audit may hold anything that a pane has printed. The page contains it as JSON in script
elements that never run, with `<` escaped, and its own script shows it as text only. Its policy lets
it run only its own scripts and load nothing.
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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import IO, Any

import orjson

from tmux_debug_mcp.linux import files
from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.vt.printable import visible

from .audits import Record, Result
from .filters import MAKING
from .logs import Cast
from .phrases import describe

# Records in each part of the page. A part is parsed when one of its records is shown.
_PER_PART = 500
# Limits for all embedded captures together, and for all recordings.
MAX_CAPTURES_BYTES = 32 << 20
MAX_CASTS_BYTES = 32 << 20
# Longer phrases and errors are cut, but not in the record.
_MAX_TEXT = 2000
# Marks in a lane for the moments at which its pane printed.
_MAX_MARKS = 5000
_ASSETS = resources.files(__package__) / "assets"


CastOf = Callable[[str, str, int], Cast | None]


def write(
    records: Iterable[Record],
    out: Path,
    title: str,
    captures: Path | None = None,
    cast_of: CastOf | None = None,
) -> int:
    """Write a page, and return the number of calls in it.

    The records are ordered by time; `captures` is the directory of full captures, and `cast_of`
    returns the recording of a server run's pane, if it has at most so many bytes. The file
    gets the page once that is complete.
    """
    try:
        with _written(out) as file:
            page = _Page(file, captures, cast_of)
            page.write(records, title)
    except OSError as error:
        raise VerbError(
            f"The page {out} can't be written: {error.strerror}. Choose another file."
        ) from error
    return page.count


@contextlib.contextmanager
def _written(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file whose content reaches the path when the block ends without an exception.

    It replaces a regular file, and is written to anything else.
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
    """A page being written, with `count` calls so far."""

    def __init__(self, file: IO[bytes], captures: Path | None, cast_of: CastOf | None) -> None:
        self.count = 0
        self._file = file
        self._captures = captures
        self._cast_of = cast_of
        # The panes with their names, and their places: by run and id, and by run and name.
        self._lanes: list[dict[str, Any]] = []
        self._places: dict[tuple[str, str], int] = {}
        self._named: dict[tuple[str, str], int] = {}
        # The lanes of panes; the others are of calls about none, or about a pane that isn't there.
        self._panes: set[int] = set()
        # Phrases and errors, results, and directories, each once, with their places.
        self._texts = {"": 0}
        self._results: dict[Result, int] = {}
        self._directories = {"": 0}
        self._calls_in: Counter[str] = Counter()  # how many calls name each directory
        # For each call: when it began in milliseconds since the epoch; how long it took, -1 if that
        # isn't on record; and the places of its pane, phrase, directory, result and error, 0 where
        # it has none.
        self._began: list[float] = []
        self._took: list[float] = []
        self._lane: list[int] = []
        self._call: list[int] = []
        self._where: list[int] = []
        self._result: list[int] = []
        self._error: list[int] = []
        self._embedded: dict[str, int] = {}  # captures, by the numbers of calls
        self._part: list[bytes] = []
        self._capture_bytes = 0
        self._cast_bytes = 0
        self._casts = 0

    def write(self, records: Iterable[Record], title: str) -> None:
        """Write the whole page."""
        script, player = _asset("page.js"), _asset("asciinema-player.min.js")
        parts = {
            "POLICY": _policy([player, script]),
            "TITLE": html.escape(visible(title)),
            "STYLE": _asset("page.css") + "\n" + _asset("asciinema-player.css"),
        }
        # In one pass, since a title may look like the place of another part.
        head = re.sub("@([A-Z]+)@", lambda place: parts[place[1]], _asset("page.html"))
        self._file.write(head.encode())
        for record in records:
            self._add(record)
        self._end_part()
        self._add_casts()
        self._data("data", self._facts())
        # The player only if there is something to play.
        for code in [player, script] if self._casts else [script]:
            self._file.write(f"<script>{code}</script>\n".encode())
        self._file.write(b"</body>\n</html>\n")

    def _add(self, record: Record) -> None:
        self._lane.append(self._lane_of(record))
        self._began.append(record.began_at * 1000)
        self._took.append(-1.0 if record.duration_s is None else record.duration_s * 1000)
        self._call.append(self._text(describe(record, directory="")))
        directory = record.directory
        self._where.append(self._directories.setdefault(directory, len(self._directories)))
        if directory and not record.error:
            self._calls_in[directory] += 1
        self._result.append(self._results.setdefault(record.result, len(self._results)))
        self._error.append(self._text(record.error))
        if record.capture:
            self._add_capture(record.capture)
        self._part.append(record.data.strip())
        self.count += 1
        if len(self._part) == _PER_PART:
            self._end_part()

    def _lane_of(self, record: Record) -> int:
        """Return the place of the pane that a call concerned, and make a lane for a new pane."""
        run = record.run
        pane = record.pane if len(record.panes) == 1 else ""
        # A failed call names the pane as its caller did, perhaps by name.
        number = self._places.get((run, pane), self._named.get((run, pane)))
        if number is None:
            number = len(self._lanes)
            self._places[run, pane] = number
            self._lanes.append({"name": visible(pane) or "server", "key": (run, pane)})
        if not (pane and not record.error):
            return number
        self._panes.add(number)
        name = record.fields.get("name")
        if record.tool in MAKING and isinstance(name, str):
            self._lanes[number]["name"] = visible(name)
            self._named[run, name] = number
        return number

    def _text(self, text: str) -> int:
        if len(text) > _MAX_TEXT:
            text = text[:_MAX_TEXT] + "…"
        return self._texts.setdefault(visible(text), len(self._texts))

    def _end_part(self) -> None:
        if self._part:
            number = (self.count - 1) // _PER_PART
            self._data(f"part-{number}", b"[" + b",".join(self._part) + b"]")
            self._part = []

    def _add_capture(self, name: str) -> None:
        """Embed the text that a call returned, if it was kept and there is room."""
        data = _capture(self._captures, name)
        if data is None or self._capture_bytes + len(data) > MAX_CAPTURES_BYTES:
            return
        self._capture_bytes += len(data)
        number = len(self._embedded)
        self._embedded[str(self.count)] = number
        self._data(f"capture-{number}", orjson.dumps(data.decode(errors="replace")))

    def _add_casts(self) -> None:
        """Embed the recordings of panes, as far as there is room."""
        for lane in self._lanes:
            run, pane = lane.pop("key")
            if not (self._cast_of and pane):
                continue
            found = self._cast_of(run, pane, MAX_CASTS_BYTES - self._cast_bytes)
            if found is None:
                continue
            self._cast_bytes += len(found.text)
            facts = {"text": found.text.decode(), "began_at": found.began_at}
            self._data(f"cast-{self._casts}", orjson.dumps(facts))
            lane["cast"] = self._casts
            lane["printed"] = found.marks(_MAX_MARKS)
            self._casts += 1

    def _facts(self) -> bytes:
        """Return what the page's script reads about all calls."""
        clock = min(self._began, default=0.0)
        [(common, _)] = self._calls_in.most_common(1) or [("", 0)]
        directories = [
            {"path": visible(path), "shown": visible(_below(common, path))}
            for path in self._directories
        ]
        ends = [at + max(0.0, took) for at, took in zip(self._began, self._took, strict=True)]
        return orjson.dumps(
            {
                "lanes": self._lanes,
                "panes": len(self._panes),
                "texts": list(self._texts),
                "began": [round(at - clock, 1) for at in self._began],
                "took": [round(took, 1) for took in self._took],
                "lane": self._lane,
                "call": self._call,
                "directory": visible(common),
                "directories": directories,
                "where": self._where,
                "results": list(map(tuple, self._results)),
                "result": self._result,
                "error": self._error,
                "captures": self._embedded,
                "clock": clock,
                "duration": max(ends, default=clock) - clock,
                "perPart": _PER_PART,
            }
        )

    def _data(self, name: str, json: bytes) -> None:
        self._file.write(f'<script type="application/json" id="{name}">'.encode())
        # In JSON, `<` occurs only in strings.
        self._file.write(json.replace(b"<", rb"\u003c"))
        self._file.write(b"</script>\n")


def _capture(directory: Path | None, name: str) -> bytes | None:
    """Return a full capture, None if it is missing."""
    if directory is None or os.path.basename(name) != name or "\0" in name:
        return None
    try:
        with open(files.open_file(str(directory / name)), "rb") as file:
            return file.read(MAX_CAPTURES_BYTES + 1)
    except (OSError, UnicodeEncodeError):
        return None


def _below(common: str, path: str) -> str:
    """Return a directory as seen from `common`, which most calls name; "" for `common` itself."""
    if path == common:
        return ""
    return f".{path.removeprefix(common)}" if path.startswith(f"{common}/") else path


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _policy(scripts: Iterable[str]) -> str:
    """Return the content security policy: these scripts, styles in the page, and nothing else."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()) for script in scripts]
    hashes = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes} 'wasm-unsafe-eval'; style-src 'unsafe-inline'; "
        "font-src data:; img-src data:; base-uri 'none'; form-action 'none'"
    )
