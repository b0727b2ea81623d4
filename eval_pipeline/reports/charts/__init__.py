"""Charts as PNG and SVG files and inline in pages, drawn by matplotlib, which is imported inside functions.

matplotlib because the same figures give the same bytes, on any machine, with the font that it brings; it needs neither
a browser nor JavaScript, as Altair's files do.
"""
