"""The page of audits in a real browser: Chromium without a window."""

import io
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from support import with_result

from tmux_debug_mcp.viewing.audits import Record, RecordParser
from tmux_debug_mcp.viewing.filters import PaneNames
from tmux_debug_mcp.viewing.logs import Cast
from tmux_debug_mcp.viewing.outputs import PlainOutput
from tmux_debug_mcp.viewing.page import write

from .conftest import Shell

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ViewportSize

# They share a browser and a page.
pytestmark = pytest.mark.xdist_group("audit page")

EVIL = "</script><script>alert(1)</script><img src=http://127.0.0.1:9/x onerror=alert(2)>\u202e"
SHOWN = EVIL.replace("\u202e", "\\u202e")
RUN = "20260130T101546-4711"
DESKTOP: "ViewportSize" = {"width": 1280, "height": 800}
PHONE: "ViewportSize" = {"width": 390, "height": 844}
# Behind the frame that a change has asked for, as frames come in the order they are asked for.
PAINTED = """() => new Promise((resolve) => requestAnimationFrame(() => {
  resolve(document.getElementById("lanes").toDataURL());
}))"""

# From the next frame on, has those texts of the timeline noted that are in view, each with its left
# and its right end.
NOTE_TEXTS = """() => {
  const pen = CanvasRenderingContext2D.prototype;
  const { clearRect, fillText } = pen;
  window.noted = [];
  pen.clearRect = function (...box) {  // each drawing begins so
    window.noted = [];
    clearRect.apply(this, box);
  };
  pen.fillText = function (text, x, y) {
    const seen = this.getTransform().transformPoint({ x, y }).y;
    if (seen > 0 && seen < this.canvas.height) {
      window.noted.push([text, x, x + this.measureText(text).width]);
    }
    fillText.call(this, text, x, y);
  };
}"""

LABELS = 140  # what the names of the lanes take of the timeline's width


def lane_middle(lane: int) -> float:
    return 22 + 24 * lane + 12


class Page:
    """A page in a tab. Whatever it says on the console, asks or loads is noted."""

    def __init__(self, context: "BrowserContext") -> None:
        self.tab = context.new_page()
        self.noted: list[str] = []
        self.tab.on("console", lambda message: self.noted.append(message.text))
        self.tab.on("pageerror", lambda error: self.noted.append(str(error)))
        self.tab.on("dialog", lambda dialog: self.noted.append(dialog.message))
        self.tab.on("request", lambda request: self.noted.append(request.url))

    def open(self, path: Path) -> "Page":
        self.tab.goto("about:blank")  # behind all that the last page has asked for
        self.noted.clear()
        self.tab.goto(path.as_uri())
        self.noted.remove(path.as_uri())
        return self

    def press(self, *keys: str) -> None:
        for key in keys:
            self.tab.keyboard.press(key)

    def rows(self, column: str = "call") -> list[str]:
        """Return the calls that are shown, from above to below, or another column of them."""
        rows = self.tab.locator(".row").all()
        rows.sort(key=lambda row: float(row.evaluate("row => parseFloat(row.style.top)")))
        return [row.locator(f".{column}").inner_text() for row in rows]

    def results(self) -> list[str]:
        return self.rows("result")

    def detail(self) -> str:
        return str(self.tab.locator("#detail").inner_text())

    def search(self, text: str) -> None:
        """Type into the search, and wait until all has been searched."""
        self.press("/")
        self.tab.locator("#search").fill(text)
        self.tab.wait_for_selector("#list[aria-busy=false]")

    def title(self) -> str:
        """Return the call in words, of which details are shown."""
        return str(self.tab.locator("#detail h2").inner_text())

    def timeline(self) -> str:
        """Return the picture of the timeline, once it has been painted."""
        return str(self.tab.evaluate(PAINTED))

    def click_lane(self, lane: int, place: float) -> None:
        """Click into the timeline: in a lane, at a place from 0, its left end, to 1."""
        box = self.tab.locator("#tall").bounding_box()
        assert box
        left = box["x"] + LABELS
        self.tab.mouse.click(left + (box["width"] - LABELS) * place, box["y"] + lane_middle(lane))

    def lane_is_in_view(self, lane: int) -> bool:
        seen = self.tab.locator("#timeline").bounding_box()
        box = self.tab.locator("#tall").bounding_box()
        assert seen
        assert box
        middle = float(box["y"]) + lane_middle(lane)
        return 0 <= middle - float(seen["y"]) <= float(seen["height"])

    def width(self) -> int:
        return int(self.tab.evaluate("document.documentElement.scrollWidth"))


@pytest.fixture(scope="module")
def written(shared: Shell) -> Path:
    """Return the page of a session, with captures and kept logs."""
    kept = ["--audit", "a.jsonl", "--audit-full", "captures", "--log-dir", "logs"]
    shared.out("start", *kept)
    shared.out("create", "--name", "web", f"echo listening; printf '%s\\n' '{EVIL}'; cat")
    shared.out("create", "--name", "client", "bash --norc")
    shared.out("send", "client", "echo request", "Enter", "--wait-for", "^request")
    shared.run("capture", "nope")
    shared.out("send", "web", EVIL, "Enter")
    shared.out("stop")
    where = ["--captures", "captures", "--log-dir", "logs"]
    shared.out("audit", "--html", "page.html", *where, "a.jsonl")
    return shared.cwd / "page.html"


@pytest.fixture(scope="module")
def desk(browser: "Browser") -> Iterator[Page]:
    """Return the one tab in which tests open pages: each more is a process of the browser's."""
    context = browser.new_context(viewport=DESKTOP)
    yield Page(context)
    context.close()


@pytest.fixture
def page(desk: Page, written: Path) -> Page:
    return desk.open(written)


def test_calls_are_rows_and_failures_stand_out(page: Page) -> None:
    rows = page.rows()

    assert rows[0].startswith("create web: echo listening")
    assert "Pane 'nope' not found" in page.tab.locator(".row.failed .error").inner_text()
    # The third lane is of a call that named no pane there is.
    assert "5 calls · 1 failed · 2 panes" in page.tab.locator("#summary").inner_text()


def test_nothing_that_a_pane_has_printed_runs_or_loads(page: Page) -> None:
    for number in range(5):
        page.press("j", "Enter")
        assert page.detail(), number
    page.tab.get_by_text("Play the pane from here").click()
    page.tab.wait_for_selector(".ap-player")
    page.tab.wait_for_timeout(500)

    loaded = [noted for noted in page.noted if not noted.startswith(("data:", "blob:"))]
    assert loaded == []
    assert page.tab.locator("img").count() == 0
    # The player is a terminal, in which a pane may print what it likes.
    page.tab.evaluate("document.querySelector('.player').remove()")
    assert "\u202e" not in page.tab.locator("body").inner_text()


def test_call_shows_what_it_returned_and_what_was_printed_meanwhile(page: Page) -> None:
    page.tab.locator(".row", has_text="echo request").click()

    assert "What it returned (debug-2-capture-002.txt)" in page.detail()
    assert "Printed meanwhile in client" in page.detail()
    assert '"wait_for": "^request"' in page.detail()


def test_search_and_failures_filter(page: Page) -> None:
    page.search("CLIENT then")
    assert page.rows() == ["send 'echo request', then Enter, until /^request/"]
    summary = page.tab.locator("#summary").inner_text()
    assert "1 of 5 calls · 1 failed · 2 panes · 0 lines of output" in summary

    page.press("Escape", "f")
    [failed] = page.rows()
    assert failed.startswith("capture")
    page.press("f")
    page.search("nothing like it")
    assert page.tab.get_by_text("Nothing matches.").is_visible()


def test_keys_move_open_and_close(page: Page) -> None:
    page.press("j", "j", "k")
    assert page.tab.locator('[aria-selected="true"] .call').inner_text().startswith("create web")
    page.press("End", "Enter")
    assert page.tab.locator("#detail").is_visible()
    page.press("Escape", "?")
    assert page.tab.locator("#detail").is_hidden()
    assert page.tab.locator("#help").is_visible()
    page.press("Escape")
    assert page.tab.locator("#help").is_hidden()


def test_timeline_can_be_zoomed_and_clicked(page: Page) -> None:
    before = page.timeline()
    page.press("+", "l")
    assert page.timeline() != before
    page.press("0")
    assert page.timeline() == before

    # The first call is at the left end of the first lane.
    page.click_lane(0, 0.021)
    assert "create web" in page.detail()


def test_recording_of_a_wide_pane_is_legible(page: Page) -> None:
    page.tab.locator(".row", has_text="echo listening").click()
    page.tab.get_by_text("Play the pane from here").click()
    # The pane has 200 columns, which the detail of a call has no room for.
    page.tab.wait_for_function("() => document.querySelector('.ap-player')?.offsetWidth >= 200 * 7")

    # It has 50 rows, which do not overlap.
    assert page.tab.locator(".ap-term-text").evaluate("text => text.clientHeight >= 50 * 14")
    box = page.tab.locator("#detail .player")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    assert page.width() <= DESKTOP["width"]
    assert page.tab.locator("#detail").evaluate("one => one.scrollWidth <= one.clientWidth")


def test_call_can_have_the_whole_window(page: Page) -> None:
    detail = page.tab.locator("#detail")
    page.press("j", "Enter")
    page.tab.get_by_text("Play the pane from here").click()
    page.tab.wait_for_selector(".ap-player")
    narrow = detail.bounding_box()

    page.press("w")
    wide = detail.bounding_box()
    assert narrow
    assert wide
    assert wide["width"] == DESKTOP["width"] > narrow["width"]
    assert wide["height"] > narrow["height"]
    # The next calls have it, too, until it is closed.
    page.press("j")
    assert "create client" in page.title()
    assert detail.bounding_box() == wide
    page.press("Escape", "Enter")
    assert detail.bounding_box() == narrow
    page.tab.get_by_role("button", name="Whole window").click()
    assert detail.bounding_box() == wide


@pytest.mark.parametrize("width", [800, 1280, 1920])
def test_calls_can_be_read_beside_the_selected_one(page: Page, width: int) -> None:
    page.tab.set_viewport_size({"width": width, "height": 800})
    page.press("j", "Enter")
    # The list scrolls to it once it has its new width.
    page.tab.wait_for_function("""() => {
        const [selected] = document.querySelectorAll('[aria-selected="true"]');
        const row = selected.getBoundingClientRect();
        const seen = document.querySelector("#list").getBoundingClientRect();
        const isSeen = seen.top <= row.top && row.bottom <= seen.bottom;
        return isSeen && selected.querySelector(".call").clientWidth >= 350;
    }""")
    page.tab.set_viewport_size(DESKTOP)


def three_calls(page_of: Callable[..., Page]) -> Page:
    """Return a page of short calls of three panes, at its beginning, a third and its end."""
    return page_of(
        *(
            {"ts": f"2026-01-30T10:{at}:00Z", "pane_id": pane, "command": pane, "duration_ms": 9}
            for at, pane in (("10", "a"), ("13", "b"), ("19", "c"))
        )
    )


@pytest.mark.parametrize("moves", [[], ["h"] * 9, ["l"] * 9])
def test_plus_zooms_to_the_selected_call(page_of: Callable[..., Page], moves: list[str]) -> None:
    page = three_calls(page_of)

    page.press("j", "j", "+", "+", *moves, "+", "+")

    page.timeline()
    page.click_lane(1, 0.5)
    assert page.title() == "run b"


def test_minus_keeps_the_selected_call_where_it_is(page_of: Callable[..., Page]) -> None:
    page = three_calls(page_of)

    page.press("j", "j", "+", "+", "+", "+", "-", "-")

    page.timeline()
    page.click_lane(1, 0.5)
    assert page.title() == "run b"


@pytest.mark.parametrize(("key", "lane", "place"), [("Home", 0, 0.032), ("End", 2, 0.968)])
def test_plus_keeps_the_first_and_the_last_call_in_view(
    page_of: Callable[..., Page], key: str, lane: int, place: float
) -> None:
    page = three_calls(page_of)
    before = page.timeline()

    page.press(key, "+")

    assert page.timeline() != before
    page.click_lane(lane, place)
    assert page.detail()


def test_lane_of_the_selected_call_is_scrolled_into_view(page_of: Callable[..., Page]) -> None:
    page = page_of(*({"pane_id": f"pane-{number}"} for number in range(40)))

    page.timeline()
    page.press("End")
    assert page.lane_is_in_view(39)
    page.press("Home")
    assert page.lane_is_in_view(0)
    page.tab.locator("#timeline").evaluate("timeline => { timeline.scrollTop = 400; }")
    page.press("+")
    assert page.lane_is_in_view(0)


def test_timeline_of_very_many_panes_is_drawn_where_it_is_scrolled_to(
    page_of: Callable[..., Page],
) -> None:
    """Browsers draw nothing into a canvas of more than 32,767 pixels."""
    page = page_of(*({"pane_id": f"pane-{number}"} for number in range(3000)))
    page.timeline()
    page.tab.evaluate(NOTE_TEXTS)

    page.press("End")
    page.timeline()
    assert page.lane_is_in_view(2999)
    noted = {text for text, _, _ in page.tab.evaluate("noted")}
    assert "pane-2999" in noted
    assert "pane-0" not in noted
    assert any(":15:46" in text for text in noted)
    size = page.tab.evaluate("[canvas.height, tall.clientHeight]")
    assert size[0] <= DESKTOP["height"]
    assert size[1] > 3000 * 24
    page.click_lane(2999, 0.02)
    assert "pane-2999" in page.detail()


@pytest.mark.parametrize("milliseconds", [10_020, 10_400, 1000])
def test_last_time_of_the_timeline_is_not_cut_off(
    page_of: Callable[..., Page], milliseconds: int
) -> None:
    page = page_of(
        {"ts": "2026-01-30T10:15:46.000Z"},
        {"ts": f"2026-01-30T10:15:{46 + milliseconds / 1000:06.3f}Z"},
    )
    page.tab.evaluate(NOTE_TEXTS)
    page.press("0")
    page.timeline()

    noted: list[tuple[str, float, float]] = page.tab.evaluate("noted")
    times = [text for text in noted if ":15:" in text[0]]
    last = 46 + milliseconds // 1000
    assert re.search(rf":{last}(?:[.,]0)?$", times[-1][0])
    assert times[-1][2] <= DESKTOP["width"]
    for (_, _, right), (_, left, _) in itertools.pairwise(times):
        assert right < left


@pytest.mark.parametrize("span_ms", [4, 40, 400])
def test_times_of_a_timeline_below_a_second_differ(
    page_of: Callable[..., Page], span_ms: int
) -> None:
    page = page_of(
        {"ts": "2026-01-30T10:15:46.001Z"}, {"ts": f"2026-01-30T10:15:46.{1 + span_ms:03d}Z"}
    )
    page.tab.evaluate(NOTE_TEXTS)
    page.press("0")
    page.timeline()

    times = [text for text, _, _ in page.tab.evaluate("noted") if ":15:" in text]
    assert len(times) > 3
    assert len(set(times)) == len(times)


def bottom(box: dict[str, float] | None) -> float:
    assert box
    return box["y"] + box["height"]


@pytest.mark.parametrize("size", [DESKTOP, {"width": 800, "height": 700}, PHONE])
def test_controls_of_the_player_are_in_view_and_nothing_covers_its_text(
    page: Page, size: "ViewportSize"
) -> None:
    page.tab.set_viewport_size(size)
    try:
        page.tab.locator(".row", has_text="echo request").click()
        page.tab.get_by_text("Play the pane from here").click()
        bar = page.tab.locator(".ap-control-bar")
        for name in ("playback", "fullscreen"):
            box = bar.locator(f".ap-{name}-button").bounding_box()
            assert box
            assert bottom(box) <= size["height"]
            assert 0 <= box["x"] <= size["width"] - box["width"]
        assert bar.evaluate("bar => getComputedStyle(bar).opacity") == "1"
        screen = page.tab.locator(".ap-term").bounding_box()
        close = page.tab.get_by_role("button", name="Close").bounding_box()
        assert screen
        assert bottom(close) <= screen["y"]
    finally:
        page.tab.set_viewport_size(DESKTOP)


def test_buttons_of_a_call_cover_none_of_its_text(page: Page) -> None:
    page.tab.locator(".row", has_text="echo request").click()
    page.tab.locator("#detail").evaluate("detail => { detail.scrollTop = 60; }")

    # What is scrolled behind the buttons is behind their bar, from one side to the other.
    bar = page.tab.locator("#detail .bar").bounding_box()
    text = page.tab.locator("#detail pre").first.bounding_box()
    assert bar
    assert text
    assert (bar["x"], bar["width"]) == (text["x"], text["width"])
    opaque = "bar => !getComputedStyle(bar).backgroundColor.startsWith('rgba')"
    assert page.tab.locator("#detail .bar").evaluate(opaque)


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_reason_of_a_failed_call_can_be_read_in_the_list(
    page_of: Callable[..., Page], width: int
) -> None:
    reason = "Pane 'nosuchpane' not found. Use tmux_list_panes to see active panes."
    refused = {"command": "make " + "x" * 200, "error": reason}
    page = page_of({"command": "a"}, refused, refused, {"command": "z"})
    page.tab.set_viewport_size({"width": width, "height": 700})
    try:
        page.press("End")
        page.tab.wait_for_function("document.querySelectorAll('.row').length === 4")
        for error in page.tab.locator(".row .error").all():
            assert error.inner_text().strip() == reason
            assert error.evaluate("""error => error.scrollHeight <= error.clientHeight
              && error.scrollWidth <= error.clientWidth""")
            row, box = error.locator("..").bounding_box(), error.bounding_box()
            assert row
            assert box
            assert bottom(box) <= bottom(row)
            assert box["x"] + box["width"] <= row["x"] + row["width"]
        rows = [row.bounding_box() for row in page.tab.locator(".row").all()]
        rows.sort(key=lambda row: row["y"])
        for above, below in itertools.pairwise(rows):
            assert bottom(above) <= below["y"] + 0.5
    finally:
        page.tab.set_viewport_size(DESKTOP)


def test_marks_are_explained(page: Page) -> None:
    assert "a pane printed" in page.tab.locator("#legend").inner_text()


def test_page_without_output_says_how_to_have_it(page_of: Callable[..., Page]) -> None:
    page = page_of({"command": "a"})

    legend = page.tab.locator("#legend").inner_text()
    assert "a pane printed" not in legend
    assert "--log-dir" in legend
    assert "--audit-full" in legend


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone(browser: "Browser", written: Path, scheme: Literal["light", "dark"]) -> None:
    context = browser.new_context(viewport=PHONE, color_scheme=scheme, has_touch=True)
    page = Page(context).open(written)

    assert page.width() <= PHONE["width"]
    page.tab.locator(".row").first.tap()
    assert page.width() <= PHONE["width"]
    assert page.tab.locator("#detail").is_visible()
    back = page.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}[scheme]
    context.close()


@pytest.fixture
def page_of(desk: Page, shell: Shell, tmp_path: Path) -> Callable[..., Page]:
    """Return what opens the page of these facts, each a record, with all else as usual."""

    def page_of(*records: dict[str, object]) -> Page:
        usual = {"ts": "2026-01-30T10:15:46.120Z", "tool": "run"}
        (tmp_path / "a.jsonl").write_text(
            "".join(json.dumps(with_result({**usual, **facts})) + "\n" for facts in records)
        )
        shell.out("audit", "--html", "page.html", "a.jsonl")
        return desk.open(tmp_path / "page.html")

    return page_of


def test_calls_say_how_they_came_out_and_failures_stand_out(page_of: Callable[..., Page]) -> None:
    page = page_of(
        {"reason": "done", "exit_code": 0},
        {"reason": "done", "exit_code": 3},
        {"reason": "done", "exit_code": 139, "signal": "SIGSEGV"},
        {"tool": "wait", "pattern": "ready", "reason": "matched"},
        {"tool": "wait", "pattern": "never", "reason": "timed_out"},
        {"tool": "list_panes"},
    )

    assert "6 calls · 3 failed" in page.tab.locator("#summary").inner_text()
    assert page.results() == [
        "exited 0",
        "exited 3",
        "killed by SIGSEGV",
        "matched",
        "timed out",
        "ok",
    ]
    page.press("f")
    assert page.results() == ["exited 3", "killed by SIGSEGV", "timed out"]
    assert page.tab.locator(".row.failed").count() == 3
    page.press("j", "j", "Enter")
    assert page.tab.locator("#detail .failed").inner_text() == "killed by SIGSEGV"
    assert "reason\ndone\nexit code\n139\nsignal\nSIGSEGV" in page.detail()


def test_common_directory_is_said_once(page_of: Callable[..., Page]) -> None:
    page = page_of(
        {"command": "a", "cwd": "/srv/shop"},
        {"command": "b", "cwd": "/srv/shop"},
        {"command": "c", "cwd": "/srv/shop/src"},
        {"command": "d", "cwd": "/opt"},
    )

    assert page.rows() == ["run a", "run b", "run c, in ./src", "run d, in /opt"]
    assert page.tab.locator("#summary").inner_text().endswith(" · in /srv/shop")
    page.press("End", "Enter")
    assert "directory\n/opt" in page.detail()
    page.search("/srv/shop")
    assert page.rows() == ["run a", "run b", "run c, in ./src"]


@pytest.fixture
def recorded(desk: Page, tmp_path: Path) -> Callable[..., Page]:
    """Return what opens a page of calls of `web`, with what they returned and what it printed.

    What it printed are texts by the seconds since the first call.
    """

    def recorded(returned: Sequence[str], printed: Sequence[tuple[float, str]] = ()) -> Page:
        usual = {"tool": "run", "pane_id": "web", "run": RUN, "command": "make"}
        parser = RecordParser(Path("a.jsonl"))
        records: list[Record] = []
        for second, text in enumerate(returned):
            (tmp_path / f"{second}.txt").write_text(text)
            ts = f"2026-01-30T10:{15 + second // 60}:{second % 60:02d}Z"
            line = json.dumps(with_result({"ts": ts, **usual, "capture": f"{second}.txt"}))
            found = parser.feed(line.encode() + b"\n")
            records += [one for one in found if isinstance(one, Record)]
        lines = [json.dumps({"version": 2, "width": 80, "height": 24})]
        lines += [json.dumps([at, "o", text]) for at, text in printed]
        cast = Cast("\n".join(lines).encode(), records[0].ended_at, [at for at, _ in printed])
        write(records, tmp_path / "page.html", "a", tmp_path, lambda *_: cast if printed else None)
        return desk.open(tmp_path / "page.html")

    return recorded


def test_page_and_table_show_the_same_times(desk: Page, tmp_path: Path) -> None:
    lines = [
        {"ts": "2026-01-30T10:15:46.000Z", "tool": "list_panes", "duration_ms": 1},
        {"ts": "2026-01-30T10:16:16.000Z", "tool": "wait", "duration_ms": 30000},
    ]
    data = "".join(f"{json.dumps(with_result(line))}\n" for line in lines).encode()
    records = [one for one in RecordParser(tmp_path).feed(data) if isinstance(one, Record)]
    write(records, tmp_path / "page.html", "a")
    file = io.BytesIO()
    table = PlainOutput(file, PaneNames())
    for record in records:
        table.show(record)

    page = desk.open(tmp_path / "page.html")
    of_page = [time.partition(".")[0] for time in page.rows("time")]
    of_table = [line.split()[1] for line in file.getvalue().decode().splitlines()[1:]]
    assert of_page == of_table
    page.press("j", "j", "Enter")
    assert of_table[1] in page.detail()


def test_search_finds_what_calls_returned(recorded: Callable[..., Page]) -> None:
    page = recorded(["", "hello\n" * 200 + "a glass of Sherbet, please", "none"])

    page.search("SHERBET glass")

    assert page.rows() == ["run make  a glass of Sherbet, please"]
    assert "1 of 3 calls · 0 failed" in page.tab.locator("#summary").inner_text()
    page.press("Enter", "j", "Enter")
    marks = page.tab.locator("#detail mark")
    assert marks.all_inner_texts() == ["glass", "Sherbet"]
    mark, pre, detail = (
        page.tab.locator(f"#detail{part}").first.bounding_box() for part in (" mark", " pre", "")
    )
    assert mark
    for box in (pre, detail):
        assert box
        assert box["y"] <= mark["y"] <= box["y"] + box["height"] - mark["height"]


def test_word_of_the_call_and_word_of_its_output_are_found_together(
    recorded: Callable[..., Page],
) -> None:
    page = recorded(["sherbet", "none"])

    page.search("make sherbet")
    assert page.rows() == ["run make  sherbet"]
    page.search("fake sherbet")
    assert page.rows() == []


PRINTED = [
    (1.0, "one\r\n"),
    (2.0, "a \x1b[1;31msher\x1b[0mbet\r\nand so"),
    (3.0, " on\r\n"),
    (30.0, "later\r\n"),
    (31.0, "\x1b[2J\x1b[H"),
]


def test_search_finds_what_was_printed_and_shows_the_screen_then(
    recorded: Callable[..., Page],
) -> None:
    page = recorded(["x", "y", "sherbet", "z"], PRINTED)

    page.search("sherbet")

    # In the order of time, each with its pane.
    assert page.rows() == ["a sherbet", "run make  sherbet"]
    assert page.rows("pane") == ["web", "web"]
    assert page.rows("time")[0] == page.rows("time")[1]
    summary = page.tab.locator("#summary").inner_text()
    assert "1 of 4 calls · 0 failed · 1 pane · 1 line of output" in summary
    page.tab.locator(".row").first.click()
    assert page.title() == "a sherbet"
    page.tab.wait_for_function(
        "() => document.querySelector('.ap-term-text')?.textContent.includes('a sherbet')"
    )
    screen = page.tab.locator(".ap-term-text").inner_text()
    assert "one" in screen
    assert "later" not in screen
    assert "one\na sherbet\nand so on\nlater" in page.detail()
    # What closes the details stays in view.
    detail = page.tab.locator("#detail").bounding_box()
    close = page.tab.locator("#detail [aria-label=Close]").bounding_box()
    assert detail
    assert close
    assert detail["y"] <= close["y"] <= detail["y"] + detail["height"]
    # The next call has its own moment.
    page.press("j")
    assert page.title() == "run make"
    page.press("k")
    assert page.title() == "a sherbet"
    page.tab.get_by_role("button", name="Show the screen then").click()
    page.tab.wait_for_selector(".ap-player")


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        # Cut anywhere, also within a sequence and a line ending.
        (["a sher", "bet\r", "\nb"], ["a sherbet"]),
        (["sher\x1b[3", "1mbet\x1b", "[0m\r\n"], ["sherbet"]),
        # Typed and grown later.
        ([*"sherbet", "s"], ["sherbet"]),
        (["sherbet", " again", " and again\r\n"], ["sherbet"]),
        (["sherbet\r\nsherbet\r\n"], ["sherbet", "sherbet"]),
        # A program that draws moves the cursor.
        (["x\x1b[5;1Hsherbet\x1b[6;1Hy"], ["sherbet"]),
        (["10 %\rsherbet\r20 %"], ["sherbet"]),
        (["she\x1b[1Crbet", "\r\n\x1b]0;sherbet\x07"], []),
    ],
)
def test_lines_are_found_however_they_were_printed(
    recorded: Callable[..., Page], pieces: list[str], found: list[str]
) -> None:
    page = recorded(["x"], [(number / 4, piece) for number, piece in enumerate(pieces, 1)])

    page.search("sherbet")

    assert page.rows() == found


def test_name_of_a_pane_alone_finds_none_of_its_lines(recorded: Callable[..., Page]) -> None:
    page = recorded(["x"], PRINTED)

    page.search("web")
    assert page.rows() == ["run make"]
    page.search("web sherbet")
    assert page.rows() == ["a sherbet"]


def test_failures_are_calls_and_not_lines(recorded: Callable[..., Page]) -> None:
    page = recorded(["sherbet"], PRINTED)

    page.search("sherbet")
    page.press("Enter", "f")

    assert page.rows() == []


def test_found_line_is_in_the_timeline(recorded: Callable[..., Page]) -> None:
    page = recorded(["x", *[""] * 40], PRINTED)
    before = page.timeline()

    page.search("later")
    assert page.timeline() != before
    page.click_lane(0, 0.02 / 1.04 + 0.75 / 1.04)
    assert page.title() == "later"


def test_hostile_output_is_found_as_text(recorded: Callable[..., Page]) -> None:
    page = recorded([f"found {EVIL}"], [(1.0, f"found {EVIL}\r\n")])

    page.search("<img")
    assert page.rows() == [f"run make  found {SHOWN}", f"found {SHOWN}"]
    page.press("Enter", "j", "Enter")
    assert page.tab.locator("#detail mark").first.inner_text() == "<img"
    page.press("j")
    assert page.title() == f"found {SHOWN}"

    assert page.tab.locator("img").count() == 0
    assert page.noted == []


# Types into the search, and returns whether it goes on.
TYPE_IN = """(text) => {
  const search = document.querySelector("#search");
  search.value = text;
  search.dispatchEvent(new Event("input"));
  return document.querySelector("#list").ariaBusy;
}"""


def test_search_of_output_goes_on_behind_what_is_typed(recorded: Callable[..., Page]) -> None:
    page = recorded(["almond", "sherbet"], PRINTED)

    assert page.tab.evaluate(TYPE_IN, "almond") == "true"
    assert page.tab.evaluate(TYPE_IN, "sherbet") == "true"
    page.tab.wait_for_selector("#list[aria-busy=false]")
    assert page.rows() == ["run make  sherbet", "a sherbet"]
    assert page.tab.evaluate(TYPE_IN, "almond") == "true"
    assert page.tab.evaluate(TYPE_IN, "") == "false"
    assert page.rows() == ["run make", "run make"]


def test_long_search_of_output_lets_the_page_go_on(recorded: Callable[..., Page]) -> None:
    page = recorded(["none"] * 20 + ["sherbet"], [(n / 4, "none\r\n") for n in range(4000)])
    # Each look at the clock finds that a second has passed.
    page.tab.evaluate("""() => {
      let now = 0;
      performance.now = () => (now += 1000);
      const wait = setTimeout;
      window.pauses = 0;
      window.setTimeout = (...given) => { window.pauses += 1; return wait(...given); };
    }""")

    assert page.tab.evaluate(TYPE_IN, "sherbet") == "true"
    page.tab.wait_for_selector("#list[aria-busy=false]")

    # At each capture, and each 500 lines of a recording: read, and searched.
    assert page.tab.evaluate("pauses") >= 20 + 2 * 4000 / 500
    assert page.rows() == ["run make  sherbet"]


def test_result_is_searched(page_of: Callable[..., Page]) -> None:
    page = page_of({"command": "a", "reason": "done", "exit_code": 3}, {"command": "b"})

    page.search("exited")

    assert page.rows() == ["run a"]


ODD: list[object] = [{"toString": 1}, {"toJSON": 1}, [[]], "", None, 1e300, 1e16, -1, True, "a"]


def test_record_of_any_types_breaks_no_view(page_of: Callable[..., Page]) -> None:
    fields = ("caller", "cursor", "reason", "exit_code", "signal", "duration_ms", "capture")
    records = [{field: odd} for field in fields for odd in ODD]
    page = page_of(*records)

    assert f"{len(records)} calls" in page.tab.locator("#summary").inner_text()
    page.press("j", "Enter")
    for record in records:
        for field, odd in record.items():
            assert f'"{field}": ' in page.detail(), (field, odd)
        page.press("j")
    assert page.noted == []


def test_large_audit_opens_with_few_elements(desk: Page, shell: Shell, tmp_path: Path) -> None:
    record = {"tool": "send_keys", "pane_id": "debug-1", "duration_ms": 3.5}
    with open(tmp_path / "large.jsonl", "w", encoding="utf-8") as file:
        for number in range(20_000):
            seconds = f"{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}"
            facts = {"ts": f"2026-01-30T{seconds}Z", **record, "keys": f"line {number}"}
            file.write(json.dumps(facts) + "\n")
    shell.out("audit", "--html", "large.html", "large.jsonl")
    page = desk.open(tmp_path / "large.html")

    assert "20000 calls" in page.tab.locator("#summary").inner_text()
    assert page.tab.evaluate("document.querySelectorAll('body *').length") < 1000
    page.press("End", "Enter")
    assert '"keys": "line 19999"' in page.detail() or "line 19999" in page.rows()[-1]
