"""The result that a right answer gives: stored in the suite, or made by running the reference code once.

What was made is kept in `$EVAL_HOME/expected` under a hash of all it follows from, so that neither another model
version nor another process runs it again.
"""

from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import json_hash, json_text, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.core.sealed import read_sealed, write_sealed
from eval_pipeline.sandbox import SnippetFailed
from eval_pipeline.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline.tracks.pandas_code.execute import runnable
from eval_pipeline.tracks.pandas_code.runner import sandbox

VERSION = 1
"""Bumped when the same code on the same tables comes to be told in another way."""


def expected_result(gold: PandasGold) -> Json | SnippetFailed:
    """The result as tagged plain data, or why the reference code gives none; closed answers and tests have none.

    Raises:
        NoSandboxError: nothing here can run the reference code.
    """
    if gold.answers or gold.tests is not None:
        return None
    if gold.stored is not None:
        return gold.stored
    assert gold.code is not None
    return reference_result(gold)


def reference_result(gold: PandasGold) -> Json | SnippetFailed:
    """The result of the reference code, from the cache or by running it."""
    assert gold.code is not None
    return _result(_kept_at(gold), runnable(gold.code, gold.context), tuple(gold.context.paths.items()))


def known_result(gold: PandasGold) -> Json:
    """The result as far as it is known without running anything; None where it is not."""
    if gold.answers or gold.tests is not None:
        return None
    if gold.stored is not None:
        return gold.stored
    text = read_sealed(_kept_at(gold))
    return None if text is None else parse_json(text)


def _kept_at(gold: PandasGold) -> Path:
    tables = {table.name: table.content_hash for table in gold.context.tables}
    key = json_hash([VERSION, gold.code, tables, version("pandas"), version("numpy")])
    return find_home().expected / f"{key}.json"


@lru_cache(maxsize=4096)
def _result(kept: Path, code: str, tables: tuple[tuple[str, Path], ...]) -> Json | SnippetFailed:
    if (text := read_sealed(kept)) is not None:
        return parse_json(text)
    found = sandbox().run(code, dict(tables))
    if isinstance(found, SnippetFailed):
        return found
    write_sealed(kept, json_text(found.result))
    return found.result
