"""Pictures of screens as SVG, still and animated.

Each row is a group, and each run of cells of one style is placed at its column and fitted into its
columns, so that rows align in whatever font the viewer has. Characters that fonts draw in other
widths are placed one by one. Box drawing and block elements are outlines, since viewers' fonts
leave gaps between rows. The colours are those of a dark terminal, whatever surrounds it. A picture
contains no script and loads nothing. Controls and lone surrogates become U+FFFD.
"""

import functools
import itertools
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from xml.sax.saxutils import escape, quoteattr

from tmux_debug_mcp.vt.rows import cell_width

from .screen import Cell, Screen
from .styles import BACKGROUND, FOREGROUND, Rgb, Style, colours, rgb

CELL_WIDTH, CELL_HEIGHT = 9, 18
# The fonts' advance is 0.6 of their size, a cell's width.
_FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_FONT_SIZE = 15
_BASELINE = 14
_UNDERLINE_Y, _STRUCK_Y, _OVERLINE_Y = 16.5, 9.5, 0.5
_DASHES = {"dotted": "1 2", "dashed": "4 2"}

_PADDING = 12
_TITLE_HEIGHT = 30
_CORNER = 8
_FRAME, _TITLE_BAR, _TITLE_TEXT = "#444", "#222", "#999"
_BUTTONS = ("#ff5f57", "#febc2e", "#28c840")
# The room for the buttons on each side of a title, in columns.
_BUTTON_COLUMNS = 8

# Characters that all monospaced fonts draw one column wide.
_PLAIN = re.compile("[ -~\u00a1-\u00ac\u00ae-\u017f]")
_WORDS = re.compile("[^ ]+(?: [^ ]+)*")
# Stands for all of them when cells are grouped by their text, which is never empty.
_ANY_PLAIN = ""
# Outlines that go from edge to edge, so that a repeated character is one wide box.
_STRETCHED = frozenset("─━═▀▁▂▃▄▅▆▇█▔░▒▓")
# How much of the background shades cover.
_SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75}
# Commands of paths that are not boxes.
_CURVED = re.compile("[lq]")
# What XML can't contain, and controls.
_HOSTILE = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Characters that change the direction of the text around them.
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def svg(screen: Screen, *, title: str = "") -> str:
    """Return a picture of a screen in the frame of a window.

    Cells beyond the screen's last column and last row are left out.
    """
    rows = [_row(screen, number) for number in range(screen.height)]
    body = "".join(f"<g{_at(number)}>{row}</g>" for number, row in enumerate(rows) if row)
    return _framed(body, (screen.columns, screen.height), title)


def animation(
    frames: Sequence[tuple[float, Screen]], *, title: str = "", hold_s: float = 3.0
) -> str:
    """Return an animated picture that shows screens one after the other, again and again.

    It contains each state of a row once, however many frames show it. It shows the last frame if
    the viewer can't animate, or wants no motion.

    `frames` holds at least one screen, each with the seconds at which it appears, ascending. The
    last frame stays for `hold_s` seconds.
    """
    if not frames:
        raise ValueError("an animation needs a frame")
    first_s = frames[0][0]
    starts = [at_s - first_s for at_s, _ in frames]
    length_s = starts[-1] + hold_s
    columns = max(screen.columns for _, screen in frames)
    height = max(screen.height for _, screen in frames)
    shown: dict[tuple[int, str], list[int]] = {}
    for frame, (_, screen) in enumerate(frames):
        for number in range(screen.height):
            shown.setdefault((number, _row(screen, number)), []).append(frame)
    names: dict[str, str] = {}  # of classes, by their keyframes
    rows = []
    for (number, row), shown_in in sorted(shown.items()):
        if not row:
            continue
        attributes = _at(number)
        if len(shown_in) < len(frames):
            steps = _keyframes(shown_in, starts, length_s)
            name = names.setdefault(steps, f"a{len(names)}")
            hidden = "" if shown_in[-1] == len(frames) - 1 else ' visibility="hidden"'
            attributes += f'{hidden} class="{name}"'
        rows.append(f"<g{attributes}>{row}</g>")
    timing = f"{length_s:g}s step-end infinite"
    rules = [f"@keyframes {name}{{{steps}}}" for steps, name in names.items()]
    rules += [f".{name}{{animation:{name} {timing}}}" for name in names.values()]
    rules.append("@media(prefers-reduced-motion:reduce){g{animation:none!important}}")
    return _framed(f"<style>{''.join(rules)}</style>{''.join(rows)}", (columns, height), title)


def _keyframes(shown_in: Sequence[int], starts: Sequence[float], length_s: float) -> str:
    """Return the keyframes of a row, from the frames that show it and when each frame begins."""
    numbers = set(shown_in)
    steps = ""
    before = state = ""
    for frame, start_s in enumerate(starts):
        state = "visible" if frame in numbers else "hidden"
        if state != before:
            share = f"{100 * start_s / length_s:.3f}".rstrip("0").rstrip(".")
            steps += f"{share}%{{visibility:{state}}}"
        before = state
    return f"{steps}to{{visibility:{state}}}"


def _framed(body: str, size: tuple[int, int], title: str) -> str:
    """Return the document of a window around rows, with the terminal's columns and rows."""
    columns, height = size
    width_px = columns * CELL_WIDTH + 2 * _PADDING
    height_px = height * CELL_HEIGHT + 2 * _PADDING + _TITLE_HEIGHT
    shown = _shortened(_clean(title), columns - 2 * _BUTTON_COLUMNS)
    label = quoteattr(shown or "terminal")
    buttons = "".join(
        f'<circle cx="{18 + 18 * number}" cy="15" r="5" fill="{colour}"/>'
        for number, colour in enumerate(_BUTTONS)
    )
    heading = ""
    if shown:
        middle = f'x="{width_px / 2:g}" y="20" text-anchor="middle"'
        heading = f'<text {middle} fill="{_TITLE_TEXT}" font-size="13">{escape(shown)}</text>'
    outline = f'x=".5" y=".5" width="{width_px - 1}" height="{height_px - 1}" rx="{_CORNER}"'
    bar_end = f"V{_TITLE_HEIGHT}H1V{_CORNER + 1}a{_CORNER} {_CORNER} 0 0 1 {_CORNER} -{_CORNER}"
    bar = f"M{_CORNER + 1} 1H{width_px - _CORNER - 1}a{_CORNER} {_CORNER} 0 0 1 {_CORNER} {_CORNER}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width_px} {height_px}" '
        f'width="{width_px}" height="{height_px}" role="img" aria-label={label} '
        f'font-family="{_FONTS}" font-size="{_FONT_SIZE}">'
        f'<rect {outline} fill="{_hex(BACKGROUND)}" stroke="{_FRAME}"/>'
        f'<path d="{bar}{bar_end}z" fill="{_TITLE_BAR}"/>{buttons}{heading}'
        f'<g transform="translate({_PADDING} {_PADDING + _TITLE_HEIGHT})" '
        f'style="font-variant-ligatures:none" fill="{_hex(FOREGROUND)}">'
        f"{body}</g></svg>\n"
    )


def _at(number: int) -> str:
    """Return the attribute that moves a row to its place."""
    if number == 0:
        return ""
    return f' transform="translate(0 {number * CELL_HEIGHT})"'


@dataclass(frozen=True, slots=True)
class _Run:
    """Cells of one style, starting at a column."""

    column: int
    cells: Sequence[Cell]
    style: Style

    @property
    def columns(self) -> int:
        """The number of columns."""
        return sum(cell.width for cell in self.cells)


def _row(screen: Screen, number: int) -> str:
    """Return what a row shows: backgrounds, shapes, lines and text, and the cursor."""
    cells = screen.rows[number] if number < len(screen.rows) else ()
    flat: list[str] = []
    inked: list[str] = []
    for run in _runs(cells, screen.columns):
        foreground, background = colours(run.style)
        if background != BACKGROUND:
            box = _box(run.column * CELL_WIDTH, 0, run.columns * CELL_WIDTH, CELL_HEIGHT)
            flat.append(f'<path d="{box}" fill="{_hex(background)}"/>')
        if run.style.hidden:
            continue
        boxes, text = _drawn(run, foreground)
        flat.append(boxes)
        inked += [text, *_lines(run, foreground)]
    picture = "".join(inked)
    if any(flat):
        picture = f'<g shape-rendering="crispEdges">{"".join(flat)}</g>{picture}'
    if screen.is_cursor_shown and screen.cursor[1] == number:
        x, width = screen.cursor[0] * CELL_WIDTH + 0.5, screen.cursor_width * CELL_WIDTH
        outline = _box(x, 0.5, width - 1, CELL_HEIGHT - 1)
        picture += f'<path d="{outline}" fill="none" stroke="{_hex(FOREGROUND)}"/>'
    return picture


def _runs(cells: Sequence[Cell], columns: int) -> Iterator[_Run]:
    """Yield the runs of a row, up to the last column."""
    column = 0
    for style, group in itertools.groupby(cells, key=lambda cell: cell.style):
        run = []
        start = column
        for cell in group:
            if column + cell.width > columns:
                break
            run.append(cell)
            column += cell.width
        if run:
            yield _Run(start, run, style)


def _pieces(run: _Run) -> Iterator[tuple[int, str, int]]:
    """Yield the column, the text and the width in columns of each separately placed piece of a run.

    A piece is plain text, a box that may be repeated, or one cell. Plain text contains only single
    blanks: viewers make one of several, whatever the style says.
    """

    def key_of(cell: Cell) -> str:
        is_plain = cell.width == 1 and _PLAIN.fullmatch(cell.text)
        return _ANY_PLAIN if is_plain else cell.text

    column = run.column
    for key, group in itertools.groupby(run.cells, key=key_of):
        cells = list(group)
        if key == _ANY_PLAIN or key in _STRETCHED:
            text = "".join(cell.text for cell in cells)
            for words in _WORDS.finditer(text):
                yield column + words.start(), words[0], len(words[0])
            column += len(text)
            continue
        for cell in cells:
            if cell.text.strip():
                yield column, cell.text, cell.width
            column += cell.width


def _drawn(run: _Run, colour: Rgb) -> tuple[str, str]:
    """Return what a run shows in two parts: what fills whole pixels, and text and curves."""
    fill = "" if colour == FOREGROUND else f' fill="{_hex(colour)}"'
    font = ""
    if run.style.bold:
        font += ' font-weight="bold"'
    if run.style.italic:
        font += ' font-style="italic"'
    boxes: defaultdict[float, str] = defaultdict(str)  # by their opacity
    curves, texts = "", ""
    for column, text, columns in _pieces(run):
        x, width = column * CELL_WIDTH, columns * CELL_WIDTH
        outline = outlines().get(text[0])
        if outline is None:
            fitted = f'textLength="{width}" lengthAdjust="spacingAndGlyphs"'
            shown = escape(_clean(text))
            texts += f'<text x="{x}" y="{_BASELINE}" {fitted}{fill}{font}>{shown}</text>'
        elif _CURVED.search(outline):
            curves += f"M{x} 0{outline}"
        else:
            repeated = outline.replace(f"h{CELL_WIDTH}", f"h{width}")
            boxes[_SHADES.get(text[0], 1)] += f"M{x} 0{repeated}"
    flat = ""
    for opacity, path in boxes.items():
        through = "" if opacity == 1 else f' fill-opacity="{opacity}"'
        flat += f'<path d="{path}"{fill}{through}/>'
    curved = f'<path d="{curves}"{fill}/>' if curves else ""
    return flat, curved + texts


@functools.cache
def outlines() -> Mapping[str, str]:
    """Return the outlines of characters in a cell, as paths relative to its corner."""
    file = resources.files(__package__) / "fonts" / "boxes.json"
    paths: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return paths


def _lines(run: _Run, foreground: Rgb) -> Iterator[str]:
    """Yield the lines through, above and below a run."""
    style = run.style
    start, end = run.column * CELL_WIDTH, (run.column + run.columns) * CELL_WIDTH
    paths = []
    if style.struck:
        paths.append(f"M{start} {_STRUCK_Y}H{end}")
    if style.overlined:
        paths.append(f"M{start} {_OVERLINE_Y}H{end}")
    if paths:
        yield f'<path d="{"".join(paths)}" stroke="{_hex(foreground)}"/>'
    if style.underline:
        colour = _hex(rgb(style.underline_colour, foreground))
        dashes = _DASHES.get(style.underline, "")
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        path = f"M{start} {_UNDERLINE_Y}H{end}"
        if style.underline == "double":
            path += f"M{start} {_UNDERLINE_Y - 2}H{end}"
        elif style.underline == "curly":
            half = CELL_WIDTH / 2
            wave = f"q{half / 2:g} -2 {half:g} 0t{half:g} 0"
            path = f"M{start} {_UNDERLINE_Y - 1}" + wave * run.columns
        yield f'<path d="{path}" fill="none" stroke="{colour}"{dashed}/>'


def _box(x: float, y: float, width: int, height: int) -> str:
    """Return the path of a rectangle."""
    return f"M{x} {y}h{width}v{height}h-{width}z"


def _hex(colour: Rgb) -> str:
    red, green, blue = colour
    return f"#{red:02x}{green:02x}{blue:02x}"


def _clean(text: str) -> str:
    """Return text without what XML can't contain and what must not reach people."""
    return _DIRECTIONS.sub("", _HOSTILE.sub("\ufffd", text))


def _shortened(text: str, max_columns: int) -> str:
    """Return text, or its beginning and an ellipsis if it is wider than this."""
    widths = itertools.accumulate(map(cell_width, text))
    kept = sum(width <= max_columns for width in widths)
    if kept == len(text):
        return text
    return text[: max(kept - 1, 0)] + "…"
