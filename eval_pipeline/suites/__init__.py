"""Suites on disk: a folder with a `suite.yaml` and the files it names; suites contain no code."""
