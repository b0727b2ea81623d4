"""Plug-ins that come with eval-pipeline, found by their entry points in `pyproject.toml` like those of other packages.

`eval_pipeline` never imports this package. Each folder is a room of its own.
"""
