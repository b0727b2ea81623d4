"""Charts as PNG and SVG files and inline in pages, drawn by matplotlib, which is imported inside functions.

matplotlib was chosen because the same figures give the same bytes on every machine, with the font it ships. Unlike
Altair's files, its charts need neither a browser nor JavaScript.
"""
