"""A screen as cells with colours and attributes, and pictures of it.

- `screen` reads cells from captures, `styles` defines their attributes and colours.
- `png` draws a screen with the glyphs that `glyphs` finds in fonts; both need Pillow.
- `pillow` says how to install Pillow.

Only `glyphs` does I/O, besides reading the package's own files in `fonts`.
"""
