"""A full-screen list that loses its last row: the count of items is drawn over it."""

import curses


def main(screen: curses.window) -> None:
    items, at = ["alpha", "beta", "gamma"], 0
    while True:
        screen.erase()
        screen.addstr(0, 0, f"{len(items)} items")
        for row, item in enumerate(items):
            screen.addstr(row + 1, 2, ("* " if row == at else "  ") + item)
        screen.refresh()
        key = screen.getkey()
        if key == "q":
            return
        if key == "j":
            at = at + 1 if at < len(items) else at
        if key == "d":
            del items[at]


curses.wrapper(main)
