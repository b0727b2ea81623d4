"""What this package adds to eval-pipeline: each module one thing, named in `pyproject.toml`."""
