"""Draws screens as SVG: one as a picture, several as an animation. No I/O.

Text stays text, in the monospaced font of whoever looks. Each run of it is stretched to its
columns, so that it is in line in any font. There is no script: an animation plays as an image, too.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from xml.sax.saxutils import escape

from tmux_debug_mcp.vt.colours import BACKGROUND, FOREGROUND, Rgb, colours_of
from tmux_debug_mcp.vt.screen import Cell, Screen
from tmux_debug_mcp.vt.styles import Style

# The size of a cell and of its font, in pixels.
_WIDTH = 8.4
_HEIGHT = 18
_FONT = 14
_BASELINE = 13.5
_MARGIN = 14
_TITLE_HEIGHT = 30
# How long the last screen of an animation stays.
_LAST_S = 3.0

# What XML can't have, U+FFFD stands for. Source: XML 1.0, 2.2.
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_LINES = (("struck", "line-through"), ("overlined", "overline"))
_BUTTONS = ("#ff5f57", "#febc2e", "#28c840")


def svg(screen: Screen, *, title: str = "") -> str:
    """Return a picture of a screen.

    Args:
        screen: The screen.
        title: The title in the frame.
    """
    rows = [_row(row) for row in screen.rows]
    lines = [_at_row(markup, number) for number, markup in enumerate(rows) if markup]
    return _document(screen, title, "", "".join(lines) + _cursor(screen))


def animation(frames: Sequence[tuple[float, Screen]], *, title: str = "") -> str:
    """Return an animation of screens, which begins again at its end.

    Args:
        frames: When each screen is shown first, in seconds, and the screen; at least one. All are
            drawn in the frame of the largest.
        title: The title in the frame.
    """
    first_s = frames[0][0]
    duration_s = frames[-1][0] - first_s + _LAST_S
    columns = max(screen.columns for _, screen in frames)
    height = max(screen.height for _, screen in frames)
    frame = Screen(columns, height, (0, 0), is_cursor_shown=False, rows=[])
    numbers: dict[str, int] = {}
    strip: list[str] = []
    moves: list[str] = []
    last = ""
    for at_s, screen in frames:
        drawn = _uses(screen, numbers)
        if drawn == last:
            continue
        last = drawn
        offset = len(strip) * height * _HEIGHT
        strip.append(f'<g transform="translate(0 {offset})">{drawn}</g>')
        percent = 100 * (at_s - first_s) / duration_s
        moves.append(f"{percent:.3f}%{{transform:translateY(-{offset}px)}}")
    definitions = "".join(f'<g id="r{number}">{text}</g>' for text, number in numbers.items())
    end = (len(strip) - 1) * height * _HEIGHT
    style = (
        f"@keyframes film{{{''.join(moves)}100%{{transform:translateY(-{end}px)}}}}"
        f".film{{animation:film {duration_s:.2f}s steps(1,end) infinite}}"
        f"@media(prefers-reduced-motion){{.film{{animation:none;transform:translateY(-{end}px)}}}}"
    )
    body = f'<defs>{definitions}</defs><g class="film">{"".join(strip)}</g>'
    return _document(frame, title, style, body)


def _uses(screen: Screen, numbers: dict[str, int]) -> str:
    """Return a screen whose rows are references, and number the rows that are new."""
    parts = []
    for row, cells in enumerate(screen.rows[: screen.height]):
        markup = _row(cells)
        if markup:
            number = numbers.setdefault(markup, len(numbers))
            parts.append(f'<use href="#r{number}" y="{row * _HEIGHT}"/>')
    return "".join(parts) + _cursor(screen)


def _document(screen: Screen, title: str, style: str, body: str) -> str:
    inner_width = screen.columns * _WIDTH
    inner_height = screen.height * _HEIGHT
    width = round(inner_width + 2 * _MARGIN, 1)
    height = inner_height + 2 * _MARGIN + _TITLE_HEIGHT
    buttons = "".join(
        f'<circle cx="{18 + 20 * number}" cy="16" r="6" fill="{colour}"/>'
        for number, colour in enumerate(_BUTTONS)
    )
    name = escape(_NO_XML.sub("\ufffd", title))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(name, {chr(34): "&quot;"})}">'
        f"<style>text{{font:{_FONT}px {_FONTS};white-space:pre}}"
        f".t{{font:13px system-ui,sans-serif}}{style}</style>"
        f'<rect width="{width}" height="{height}" rx="8" fill="{_hex(BACKGROUND)}" '
        f'stroke="#444"/>{buttons}'
        f'<text class="t" x="{width / 2:.1f}" y="21" fill="#999" text-anchor="middle">{name}</text>'
        f'<svg x="{_MARGIN}" y="{_TITLE_HEIGHT + _MARGIN}" width="{inner_width:.1f}" '
        f'height="{inner_height}">{body}</svg></svg>\n'
    )


def _at_row(markup: str, number: int) -> str:
    return f'<g transform="translate(0 {number * _HEIGHT})">{markup}</g>'


def _row(cells: Sequence[Cell]) -> str:
    """Return the markup of a row, "" for one that is blank."""
    backgrounds = []
    texts = []
    column = 0
    for style, run in groupby(cells, key=_style_of_run):
        cells_of_run = list(run)
        width = sum(cell.width for cell in cells_of_run)
        foreground, background = colours_of(style)
        if background != BACKGROUND:
            backgrounds.append(_rect(column, width, background))
        text = "".join(cell.text for cell in cells_of_run)
        if not style.hidden and (text.strip(" ") or _decoration(style)):
            texts.append(_text(column, width, text, style, foreground))
        column += width
    return "".join(backgrounds + texts)


def _style_of_run(cell: Cell) -> Style:
    return cell.style


def _rect(column: int, width: int, colour: Rgb) -> str:
    return (
        f'<rect x="{column * _WIDTH:.1f}" width="{width * _WIDTH:.1f}" height="{_HEIGHT}" '
        f'fill="{_hex(colour)}"/>'
    )


def _text(column: int, width: int, text: str, style: Style, colour: Rgb) -> str:
    attributes = f' fill="{_hex(colour)}"'
    if not _decoration(style):
        # Blanks at the ends are not drawn.
        stripped = text.lstrip(" ")
        column += len(text) - len(stripped)
        width -= len(text) - len(stripped.rstrip(" "))
        text = stripped.rstrip(" ")
    if style.bold:
        attributes += ' font-weight="bold"'
    if style.italic:
        attributes += ' font-style="italic"'
    if _decoration(style):
        attributes += f' text-decoration="{_decoration(style)}"'
    return (
        f'<text x="{column * _WIDTH:.1f}" y="{_BASELINE}" textLength="{width * _WIDTH:.1f}" '
        f'lengthAdjust="spacingAndGlyphs"{attributes}>{escape(_NO_XML.sub(chr(0xFFFD), text))}'
        "</text>"
    )


def _decoration(style: Style) -> str:
    names = [name for attribute, name in _LINES if getattr(style, attribute)]
    if style.underline:
        names.append("underline")
    return " ".join(names)


def _cursor(screen: Screen) -> str:
    if not screen.is_cursor_shown:
        return ""
    column, row = screen.cursor
    return (
        f'<rect x="{column * _WIDTH:.1f}" y="{row * _HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" fill="none" stroke="{_hex(FOREGROUND)}"/>'
    )


def _hex(colour: Rgb) -> str:
    red, green, blue = colour
    return f"#{red:02x}{green:02x}{blue:02x}"
