"""Keeps statistics that are about to be replaced, e.g. when an evaluation is scored again by other code."""

from eval_pipeline.fingerprints import UNKNOWN_CODE
from eval_pipeline.store.durable import locked
from eval_pipeline.store.record import Contents
from eval_pipeline.store.tables import GENERATIONS, GOLD_EDITIONS, STATISTICS, SUPERSEDED_STATISTICS, TURN_RESULTS
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import lock_file, now

_LAST = "last"
_PATIENCE_S = 60.0


def _edition(inputs: Inputs) -> str | None:
    """Returns the name of the gold edition of the recorded figures; None if unknown."""
    if inputs.header(GOLD_EDITIONS) is None:
        return None
    rows = inputs.read(GOLD_EDITIONS, ["edition", "name"]).to_pylist()
    return next((str(row["name"]) for row in rows if row["edition"] == "scored"), None)


def keep_superseded(inputs: Inputs) -> None:
    """Copies the recorded statistics of an evaluation to `superseded_statistics`, each once.

    Statistics that do not belong to the recorded turns, as a killed run may leave them, are not copied.
    """
    scored, statistics = inputs.header(TURN_RESULTS), inputs.header(STATISTICS)
    if not scored or not statistics or statistics.made_from.get(TURN_RESULTS.name) != scored.content_hash:
        return

    def with_statistics() -> Contents | None:
        kept = inputs.header(SUPERSEDED_STATISTICS)
        if kept and kept.made_from.get(_LAST) == statistics.content_hash:
            return None
        before = inputs.read(SUPERSEDED_STATISTICS).to_pydict() if kept else {}
        table = inputs.read(STATISTICS)
        columns = {column.name: table[column.name].to_pylist() for column in STATISTICS.columns}
        told = {
            "superseded_at": now(),
            "scored_by": scored.made_from.get("code", UNKNOWN_CODE),
            "responses": scored.made_from.get(GENERATIONS.name, ""),
            "gold_edition": _edition(inputs),
            "gold_hash": scored.made_from.get("gold"),
        }
        columns |= {name: [value] * statistics.rows for name, value in told.items()}
        kept_now = {name: [*before.get(name, ()), *values] for name, values in columns.items()}
        return {_LAST: statistics.content_hash}, kept_now

    with locked(lock_file(inputs.workspace, inputs.place, "superseded"), _PATIENCE_S):
        inputs.record.rewrite(SUPERSEDED_STATISTICS, inputs.key(SUPERSEDED_STATISTICS), with_statistics)
