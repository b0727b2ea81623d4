"""The result of a right answer: either stored in the suite, or made by running the reference code once.

A computed result is cached in `$EVAL_HOME/expected` under a hash of everything it depends on, so that no other model
version or process has to run the code again.
"""

from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path

from eval_pipeline.core.hashing.kept import read_sealed, write_sealed
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import json_hash, json_text, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.layers import Layer
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.running.execute import runnable
from eval_pipeline_plugins.tracks.pandas_code.running.runner import OWN_CODE_S, sandbox
from eval_pipeline_plugins.tracks.pandas_code.variants.steps import leaves_nothing

VERSION = 1
"""Increase this when the same code on the same tables gets another representation."""


def expected_result(gold: PandasGold) -> Json | SnippetFailed:
    """Returns the result as tagged plain data, or why the reference code has none; None for closed answers and tests.

    Raises:
        NoSandboxError: this machine cannot run the reference code.
    """
    if gold.answers or gold.tests is not None:
        return None
    if gold.stored is not None:
        return gold.stored
    assert gold.code is not None
    return reference_result(gold)


def reference_result(gold: PandasGold) -> Json | SnippetFailed:
    """Returns the result of the reference code, from the cache or by running it."""
    assert gold.code is not None
    context = gold.context
    return _result(_kept_at(gold), runnable(gold.code, context), tuple(context.paths.items()), context.layer)


def known_result(gold: PandasGold) -> Json:
    """Returns the result if it is known without running anything, else None."""
    if gold.answers or gold.tests is not None:
        return None
    if gold.stored is not None:
        return gold.stored
    text = read_sealed(_kept_at(gold))
    return None if text is None else parse_json(text)


def _kept_at(gold: PandasGold) -> Path:
    tables = {table.name: table.content_hash for table in gold.context.tables}
    code = gold.code
    if code is not None and (gold.context.template or gold.context.output):
        code = runnable(code, gold.context)  # the same code may be used in different ways
    layer = [] if gold.context.layer is None else [gold.context.layer.folder.name]
    key = json_hash([VERSION, code, tables, *libraries(), *layer])
    return find_home().expected / f"{key}.json"


@cache
def libraries() -> tuple[str, ...]:
    """Returns the versions of pandas and numpy, which are in files that take long to read."""
    return version("pandas"), version("numpy")


@lru_cache(maxsize=4096)
def _result(kept: Path, code: str, tables: tuple[tuple[str, Path], ...], layer: Layer | None) -> Json | SnippetFailed:
    if (text := read_sealed(kept)) is not None:
        return parse_json(text)
    paths = dict(tables)
    found = sandbox(layer).run(code, paths, wall_s=OWN_CODE_S, leaves_nothing=leaves_nothing([code], [*paths]))
    if isinstance(found, SnippetFailed):
        return found
    write_sealed(kept, json_text(found.result))
    return found.result
