"""Suites on disk: a folder with a `suite.yaml` and the files it names; suites contain no code."""

from eval_pipeline.suites.headers import (
    IMPORTED_FROM,
    OVERRIDES_FILE,
    REVIEWS_FOLDER,
    SUITE_FILE,
    SuiteFile,
    SuiteSource,
    find_suites,
    is_import,
    load_suite,
    read_header,
    suite_files,
)
from eval_pipeline.suites.overrides import Override, ScoredGold

__all__ = [
    "IMPORTED_FROM",
    "OVERRIDES_FILE",
    "REVIEWS_FOLDER",
    "SUITE_FILE",
    "Override",
    "ScoredGold",
    "SuiteFile",
    "SuiteSource",
    "find_suites",
    "is_import",
    "load_suite",
    "read_header",
    "suite_files",
]
