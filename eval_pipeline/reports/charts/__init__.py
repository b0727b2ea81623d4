"""Charts of pages as SVG of our own, and as PNG files drawn by matplotlib, which is imported inside functions.

matplotlib was chosen because the same figures give the same bytes on every machine, with the font it ships.
"""
