"""Charts of pages as SVG of our own, and as files: the same SVG, and its picture in PNG."""
