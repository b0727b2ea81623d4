"""Explains a wrong answer by the steps between it and the reference code."""

from collections import Counter
from dataclasses import asdict, dataclass

from eval_pipeline.core.hashing.kept import read_sealed, write_sealed
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.cases.expected import expected_result
from eval_pipeline_plugins.tracks.pandas_code.robust.answers import Behaviour, without_layout
from eval_pipeline_plugins.tracks.pandas_code.robust.examined import variants_of
from eval_pipeline_plugins.tracks.pandas_code.robust.mending import MOST_STEPS, Tried, steps_between
from eval_pipeline_plugins.tracks.pandas_code.robust.requirements import turn_requirements
from eval_pipeline_plugins.tracks.pandas_code.robust.running import same
from eval_pipeline_plugins.tracks.pandas_code.robust.variants import kept_at

VERSION = 1
"""Raised when other steps come to be found between the same codes."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the results of an answer on the given tables and the variants show about it.

    Attributes:
        understanding: 1 - steps / requirements. If no steps are found, the agreement with the reference code, times
            what more steps than are looked for would leave.
        coverage: the same, where only steps count that are missing.
        words: the steps, each in words; empty for an answer that is right or could not be mended.
        kinds: kinds of the requirements that they concern, as named in `variants.mutants.Kind`.
        exact: whether the answer behaves like the reference code with these steps, everywhere.
    """

    understanding: float
    coverage: float
    words: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    exact: bool = False


def explained(gold: PandasGold, code: str, given: Json, behaviour: Behaviour, *, right: bool) -> Explanation:
    """Returns the explanation of an answer; equal answers to a turn are mended once.

    Args:
        gold: the turn's gold, with reference code and variants.
        code: the answer's code.
        given: its result on the given tables; None if it is not known.
        behaviour: its results on the variants.
        right: whether its result on the given tables is the expected one.

    Raises:
        NoSandboxError: this machine cannot run code.
    """
    if right and all(behaviour.right):
        return Explanation(1.0, 1.0)
    tried = _tried(gold, given, behaviour)
    told = [without_layout(code), len(tried.recipes), VERSION, gold.context.options.mending_runs]
    place = find_home().expected / kept_at(gold, "explained", *told)
    if (text := read_sealed(place)) is not None:
        kept = parse_json(text)
        return Explanation(**kept | {"words": tuple(kept["words"]), "kinds": tuple(kept["kinds"])})
    found = _explained(gold, code, tried)
    write_sealed(place, json_text(asdict(found)))
    return found


def _explained(gold: PandasGold, code: str, tried: Tried) -> Explanation:
    steps, count = steps_between(gold, code, tried), turn_requirements(gold)
    if steps is None:
        left = _beyond_chance(tried) * max(0.0, 1 - MOST_STEPS / count)
        return Explanation(left, left)
    missing = sum(step.missing for step in steps)
    kinds = tuple(dict.fromkeys(step.kind for step in steps))
    words = tuple(step.words for step in steps)
    return Explanation(max(0.0, 1 - len(steps) / count), max(0.0, 1 - missing / count), words, kinds, True)


def _tried(gold: PandasGold, given: Json, behaviour: Behaviour) -> Tried:
    variants = variants_of(gold)
    results = behaviour.results or [one.expected for one in variants]
    recipes, wanted = [one.tables for one in variants], [one.expected for one in variants]
    right = behaviour.right if behaviour.results else [True for _ in variants]
    expected = expected_result(gold)
    if given is None or isinstance(expected, SnippetFailed):
        return Tried(recipes, wanted, results, right, behaviour.changed)
    right = [same(gold, given, expected), *right]
    return Tried([{}, *recipes], [expected, *wanted], [given, *results], right, behaviour.changed)


def _beyond_chance(tried: Tried) -> float:
    """Returns how far the agreement exceeds that of code which always returns the most frequent expected result."""
    if not tried.right:
        return 0.0
    agreement = sum(tried.right) / len(tried.right)
    chance = Counter(map(json_text, tried.expected)).most_common(1)[0][1] / len(tried.right)
    return max(0.0, (agreement - chance) / (1 - chance)) if chance < 1 else 0.0
