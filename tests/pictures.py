"""Pictures of screens, compared with the cells that they show."""

from PIL import Image

from tmux_debug_mcp.pictures.glyphs import CELL_HEIGHT, CELL_WIDTH
from tmux_debug_mcp.pictures.screen import Cell, DrawnScreen
from tmux_debug_mcp.pictures.styles import rgb

WHITE, BLACK = (229, 229, 229), (0, 0, 0)


def colours(image: Image.Image, column: int, row: int, width: int = 1) -> set[tuple[int, int, int]]:
    """Return the colours of the pixels of a cell."""
    x, y = column * CELL_WIDTH, row * CELL_HEIGHT
    box = (x, y, x + width * CELL_WIDTH, y + CELL_HEIGHT)
    found = image.crop(box).getcolors(1 << 16)
    assert found
    return {colour for _, colour in found if isinstance(colour, tuple)}  # type: ignore[misc]


def check_cells(image: Image.Image, screen: DrawnScreen) -> int:
    """Check that each cell of a picture has its background, and ink if it has a character.

    Returns:
        How many cells have ink.
    """
    assert image.size == (screen.columns * CELL_WIDTH, screen.height * CELL_HEIGHT)
    inked = 0
    for number, row in enumerate(screen.rows):
        column = 0
        for cell in row:
            if (column, number) != screen.cursor:
                _check_cell(image, cell, column, number)
                inked += bool(cell.text.strip())
            column += cell.width
    return inked


def _check_cell(image: Image.Image, cell: Cell, column: int, row: int) -> None:
    style = cell.style
    number = style.foreground
    if style.bold and isinstance(number, int) and number < 8:
        number += 8
    foreground, background = rgb(number, WHITE), rgb(style.background, BLACK)
    if style.reverse:
        foreground, background = background, foreground
    found = colours(image, column, row, cell.width)
    assert background in found or cell.text in "█▀▄", (cell, column, row, found)
    has_lines = style.underline or style.struck or style.overlined
    if cell.text.isspace() and not has_lines:
        assert found == {background}, (cell, column, row)
    if cell.text.strip() and foreground != background and not style.hidden:
        assert len(found) > 1, (cell, column, row)
