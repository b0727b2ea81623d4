"""Tests which mutants of a turn's reference code the turn's own tables distinguish from it."""

from collections.abc import Sequence

from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed
from eval_pipeline.tracks.scored.mutation_score import Survivor, TurnMutants
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasTurn
from eval_pipeline_plugins.tracks.pandas_code.cases.expected import expected_result
from eval_pipeline_plugins.tracks.pandas_code.robust.answers import counterexample
from eval_pipeline_plugins.tracks.pandas_code.robust.examined import mutants_on_variants, variants_of
from eval_pipeline_plugins.tracks.pandas_code.robust.requirements import turn_mutants
from eval_pipeline_plugins.tracks.pandas_code.robust.running import results_of, same
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants import Mutant


def turn_mutants_score(turn: PandasTurn) -> TurnMutants | None:
    """Returns which mutants give the expected result on the given tables; None if no result of code decides.

    Raises:
        NoSandboxError: this machine cannot run code.
    """
    gold = turn.gold
    if gold.code is None or gold.answers or gold.tests is not None:
        return None
    expected = expected_result(gold)
    if isinstance(expected, SnippetFailed):
        return None
    mutants = turn_mutants(gold)
    given = results_of(gold, [one.code for one in mutants], [{}])
    left = [place for place, results in enumerate(given) if same(gold, results[0], expected)]
    survivors = [_survivor(turn, mutants[place], place) for place in left]
    return TurnMutants(turn.id, len(mutants), survivors)


def _survivor(turn: PandasTurn, mutant: Mutant, place: int) -> Survivor:
    """Returns a surviving mutant, with small tables that distinguish it from the reference code, if any are found."""
    gold, variants, gives = turn.gold, variants_of(turn.gold), mutants_on_variants(turn.gold)
    results: Sequence[Json] = gives[place].results if gives else ()
    for variant, result in zip(variants, results, strict=False):
        if not same(gold, result, variant.expected):
            told = counterexample(gold, variant, mutant.code, result, True)
            return Survivor(mutant.words, told["tables"], told["expected"], told["returned"])
    return Survivor(mutant.words, {})
