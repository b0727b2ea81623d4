"""What decides what comes of code, as the key under which it is kept, and whether it is the same each time."""

import ast
import os
import re
import unicodedata
from functools import lru_cache

from eval_pipeline.core.hashing.described import Told, described, installed
from eval_pipeline.core.ids import file_hash, json_hash
from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.tiers import ENVIRONMENT
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasCase, PandasContext, PandasTurn
from eval_pipeline_plugins.tracks.pandas_code.cases.source import SuiteTable
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code

_RUNS_WITH = ("pandas", "numpy", "pyarrow", "polars", "scipy", "ruff")
_OF_THE_MOMENT = frozenset(
    "now today utcnow time time_ns perf_counter monotonic process_time clock localtime gmtime ctime datetime_now "
    "random secrets uuid uuid1 uuid4 urandom default_rng SystemRandom getpid getppid environ id hash object "
    "exec eval compile getattr globals locals vars dir open __import__ importlib builtins os sys threading subprocess "
    "multiprocessing signal gc inspect resource tracemalloc weakref socket timeit "
    "default_timer tempfile mkdtemp".split()
)
"""Names by which code can learn what is not in its tables, or hide that it does. More than there need be."""
_MOMENTS = ("now", "today")
_SURROUNDINGS = ("/proc", "/dev", "/sys")


def depends_on(case: PandasCase, turn: PandasTurn | None, artefact: Code | None) -> Json:
    """See `Keeps.depends_on`: None for code that may draw at random, or look at the clock or its surroundings."""
    context = case.context
    texts = [artefact.code if artefact is not None else "", context.template or ""]
    texts += [turn.gold.code or "", turn.gold.tests or ""] if turn is not None else []
    if not all(map(is_steady, texts)) or (context.layer is not None and not context.layer.installed):
        return None
    told: list[Json] = [installed(_RUNS_WITH), os.environ.get(ENVIRONMENT, "")]
    if artefact is not None:
        told.append(described([artefact.code, artefact.answer]))
    known: dict[type, Told] = {SuiteTable: lambda table: _table(table, str(table.folder))}
    if turn is None:
        return [*told, described(context, known)]
    # the gold has the same context
    known_gold: dict[type, Told] = {**known, PandasContext: lambda _: None}
    return [*told, described(context, known), described([turn.gold, turn.question], known_gold)]


@lru_cache(maxsize=4096)
def is_steady(code: str) -> bool:
    """Whether code gives the same on the same tables, whenever it runs; False if that is not sure."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # or a template, whose parts are no programs
        words = re.findall(r"\w+", unicodedata.normalize("NFKC", code))
        return not any(_is_told(word) or word.lower() in _MOMENTS for word in words)
    return not any(_is_of_the_moment(node) for node in ast.walk(tree))


def _is_of_the_moment(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _is_told(name)
        case ast.Call(func=ast.Attribute(attr="empty" | "empty_like") | ast.Name(id="empty" | "empty_like")):
            return True  # what memory had before
        case ast.Call(func=ast.Attribute(attr="query"), args=args, keywords=keywords):
            given = (part for one in (*args, *keywords) for part in ast.walk(one) if isinstance(part, ast.Constant))
            return any(_asks_of_the_moment(one.value) for one in given if isinstance(one.value, str))
        case ast.Import(names=names):
            return any(part in _OF_THE_MOMENT for one in names for part in one.name.split("."))
        case ast.ImportFrom(module=module, names=names):
            parts = [*(module or "").split("."), *(one.name for one in names)]
            return any(part in _OF_THE_MOMENT for part in parts)
        case ast.Constant(value=str() as text):
            return text.strip().lower() in _MOMENTS or text.strip().startswith(_SURROUNDINGS)
    return False


def _asks_of_the_moment(query: str) -> bool:
    """Whether a query of pandas may give something else tomorrow: `d < "now"`, `d < @pd.Timestamp.now()`."""
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", query))
    calls = re.search(r"@\s*\w+\s*[.(]", query) is not None
    return any(word.lower() in _MOMENTS or (calls and _is_told(word)) for word in words)


def _is_told(name: str) -> bool:
    return name in _OF_THE_MOMENT or name.startswith("__")


@lru_cache(maxsize=1024)
def _table(table: SuiteTable, folder: str) -> str:
    """Returns a hash of all that is known of a table, and of its file as it is now; `folder` is the table's."""
    return json_hash([described(table), file_hash(table.path)])
