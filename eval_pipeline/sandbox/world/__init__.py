"""Worlds: folders with files and databases in which agents act by tools, each attempt in an overlay of its own.

`Worlds` opens them; `World` is one attempt's, with its tools and what it has changed in the end.
"""
