"""Analyses the code of a snippet by its syntax tree: what it does and how well it is written. Nothing is run."""
