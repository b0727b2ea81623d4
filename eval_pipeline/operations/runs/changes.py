"""Changes that do not make a stage run again but are reported: library versions, and the judge's prompt."""

from collections.abc import Iterator

import pyarrow.compute as pc

from eval_pipeline.chain.evaluation import chain_of, evaluating
from eval_pipeline.chain.freshness import LIBRARIES, changes, prepared
from eval_pipeline.core import shown
from eval_pipeline.core.errors import EvalError
from eval_pipeline.stages.settings import JUDGE_PROMPT
from eval_pipeline.store.tables import JUDGEMENTS, TURN_RESULTS
from eval_pipeline.workspace.inputs import Inputs


def changes_told(inputs: Inputs) -> list[str]:
    """Returns a sentence for each of these changes to an evaluation, with the command that applies it and its cost."""
    found: dict[str, list[tuple[str, str]]] = {}
    try:
        for stage in (stage for stage in evaluating(chain_of(inputs.track)) if stage.writes):
            for name, pair in changes(stage, prepared(stage, inputs)).items():
                found.setdefault(name, []).append(pair)
    except EvalError:
        return []  # the run reports the problem
    place, command = inputs.place, "eval-pipeline rescore"
    command += f" --suite {place.suite} --model-version {place.model_version} --eval-date {place.eval_date}"
    told = []
    if libraries := dict.fromkeys(text for pair in found.get(LIBRARIES, ()) for text in _updated(*pair)):
        turns = inputs.header(TURN_RESULTS)
        took = f"{shown.turns(turns.rows if turns else 0)}, and asks no model"
        told.append(f"made with {', '.join(libraries)}; `{command}` makes its figures anew: {took}")
    if JUDGE_PROMPT in found:
        rows = inputs.read(JUDGEMENTS, ["asked", "usd"])
        asked, usd = pc.sum(rows["asked"]).as_py() or 0, pc.sum(rows["usd"]).as_py()
        cost = "at an unknown price" if usd is None else f"for about {shown.dollars(usd)}"
        about = f"about {shown.counted(asked, 'answer', 'answers')} again, {cost}"
        told.append(f"judged under another question; `{command} --ask-judge` asks {about}")
    return [f"{place.suite}, {place.model_version}: {text}" for text in told]


def _updated(before: str, now: str) -> Iterator[str]:
    """Yields the libraries whose versions differ, with both versions."""
    old, new = (dict(part.rsplit(" ", 1) for part in text.split(", ") if part) for text in (before, now))
    yield from (f"{name} {old[name]} (now {new[name]})" for name in old if name in new and old[name] != new[name])
