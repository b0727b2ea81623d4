"""The changes of the reference code that an answer suggests, and which of them are run first to explain it."""

from collections.abc import Sequence
from functools import lru_cache

from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.cases.dialect import is_polars
from eval_pipeline_plugins.tracks.pandas_code.robust.requirements import known_of, normal_code, normal_mutants
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants import Ranked, lent_mutants

BEST = 3
"""Changes that are run first, of those that make the codes most alike."""
FAILS = 1 / 3
"""Share of the tables on which an answer may fail and still be explained."""


def first_changes(gold: PandasGold, code: str, results: Sequence[Json]) -> list[str]:
    """Returns the changed reference codes that are run first to explain an answer.

    Args:
        gold: the turn's gold, with reference code.
        code: the answer's code.
        results: what it gives on the variants.
    """
    if is_polars(gold.context) or results.count(None) > FAILS * len(results):
        return []
    most = min(BEST, gold.context.options.mending_runs // (1 + len(results)))
    if not most:
        return []
    changes = lent(gold, normal_code(gold, str(gold.code)), normal_code(gold, code))
    return [one.mutant.code for one in changes if one.rank == changes[0].rank < 0][:most]


@lru_cache(maxsize=16)
def lent(gold: PandasGold, code: str, other: str) -> tuple[Ranked, ...]:
    """Returns `lent_mutants` of code in the normal form, for the tables of a turn."""
    own = normal_mutants(gold) if code == normal_code(gold, str(gold.code)) else None
    return tuple(lent_mutants(code, other, known_of(gold), own))
