"""Reads KaggleDBQA's questions: a file of `examples/`, or the folder, of which the files for testing are taken.

They have Spider's form. The databases are SQLite files below `databases/`; `KaggleDBQA_tables.json` beside them has
Spider's form, too, with descriptions of the columns.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline_plugins.data_sets.sql.spider import SpiderQuestion, read_questions, spider_cases

_TESTS = "*_test.json"


def read_kaggledbqa(source: Path, limit: int | None, given: Sequence[Path], folder: Path) -> Iterator[dict[str, Json]]:
    """Yields the cases in the suite's file format, and writes their databases to the suite's folder.

    Raises:
        InputError: an entry is wrong (the message names entry and field), a database was not given, or a folder has no
            file of test questions.
    """
    sources = sorted(source.glob(_TESTS)) if source.is_dir() else [source]
    if not sources:
        raise InputError([Problem(str(source), None, "", f"has no files of test questions ({_TESTS})")])
    questions: list[SpiderQuestion] = []
    for path in sources:
        left = None if limit is None else limit - len(questions)
        if left != 0:
            questions += read_questions(path, left)
    yield from spider_cases(source, questions, given, folder)
