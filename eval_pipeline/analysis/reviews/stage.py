"""The stage `reviews`. What reads reviews is loaded only where there are any."""

from collections.abc import Mapping

from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.core.model import Json
from eval_pipeline.store.tables import REVIEW_STATISTICS, REVIEWS
from eval_pipeline.suites.headers import REVIEWS_FOLDER
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs


def make_reviews(inputs: Inputs, outputs: Outputs) -> None:
    """Makes the tables `reviews` and `review_statistics` of a suite; they are empty without files of reviews."""
    if _has_files(inputs):
        Later("eval_pipeline.analysis.reviews.making:make_reviews")(inputs, outputs)
    else:
        outputs.rows(REVIEWS)
        outputs.rows(REVIEW_STATISTICS)


def reviews_and_answers(inputs: Inputs) -> Mapping[str, str]:
    """Returns what decides both tables: hashes of the reviews, the queues and the reviewed answers."""
    if not _has_files(inputs):
        return {"reviews": json_hash([]), "answers": json_hash([])}
    found: Mapping[str, str] = Later("eval_pipeline.analysis.reviews.making:reviews_and_answers")(inputs)
    return found


def review_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns the number of reviews, and of those that count."""
    said = inputs.read(REVIEWS, ["is_current"])["is_current"].to_pylist()
    return {"reviews": len(said), "current": sum(said)}


def _has_files(inputs: Inputs) -> bool:
    source = inputs.workspace.suites.get(inputs.suite)
    return source is not None and (source.folder / REVIEWS_FOLDER).exists()
