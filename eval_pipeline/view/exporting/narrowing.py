"""Limits a request to the rows of some turns, as thousands of pages would otherwise each search the whole store."""

from collections.abc import Iterable, Sequence

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.published.ddl import text
from eval_pipeline.view.evaluation import KEY, StoredEvaluation
from eval_pipeline.view.filtering.only import of_evaluation
from eval_pipeline.view.published import Row, StoreView

BATCH = 200
"""How many turns are read together."""
_OF_TURN = {*KEY, "turn_id"}
_ATTEMPTS, _PROMPTS = "attempts", "prompts"


def narrow_to_next(look: StoreView, evaluation: StoredEvaluation, rows: Sequence[Row]) -> int:
    """Limits the request to as many of the first rows as memory allows, and returns their number.

    Raises:
        StoreError: memory is not even enough for one.
    """
    size = min(BATCH, len(rows))
    while True:
        try:
            narrow(look, evaluation, rows[:size])
            return size
        except StoreError:
            if size == 1:
                raise
            size //= 2


def narrow(look: StoreView, evaluation: StoredEvaluation, rows: Sequence[Row]) -> None:
    """Limits the tables of turns, cases and prompts to what these rows need, for the rest of the request."""
    of_evaluation_now = of_evaluation(evaluation, "r")
    turns = f"r.turn_id IN ({_listed(row['turn_id'] for row in rows)})"
    cases = f"r.case_id IN ({_listed({row['case_id'] for row in rows})})"
    suite = f"r.suite = {text(evaluation.partition.suite)}"
    for table in _tables_of_turns(look):
        # Earlier turns of the same conversations are shown too, whether they were drawn or not.
        chosen = cases if table == _ATTEMPTS else turns
        look.shadow(table, f"{of_evaluation_now} AND {chosen}")
    look.shadow("cases", f"{suite} AND {cases}")
    look.shadow("turns", f"{suite} AND {turns}")
    look.shadow(_PROMPTS, f"r.prompt_hash IN (SELECT prompt_hash FROM {_ATTEMPTS})")


def _tables_of_turns(look: StoreView) -> Sequence[str]:
    """Returns the tables that have rows per turn of an evaluation.

    Views need no change because they use these tables.
    """
    marks = ", ".join("?" * len(_OF_TURN))
    found = look.rows(
        f"""SELECT c.table_name FROM duckdb_columns() AS c SEMI JOIN duckdb_tables() AS t
            ON t.database_name = c.database_name AND t.schema_name = c.schema_name AND t.table_name = c.table_name
        WHERE c.database_name = 'store' AND c.schema_name = 'main' AND c.column_name IN ({marks})
        GROUP BY c.table_name HAVING count(*) = {len(_OF_TURN)} ORDER BY c.table_name = '{_ATTEMPTS}' DESC""",
        sorted(_OF_TURN),
    )
    return [row["table_name"] for row in found]


def _listed(ids: Iterable[str]) -> str:
    return ", ".join(map(text, sorted(set(ids))))
