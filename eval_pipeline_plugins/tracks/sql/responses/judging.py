"""Decides which pairs the judge is asked about, and which values are known without asking."""

from collections.abc import Sequence

from eval_pipeline.core.model import Attempt, Evidence
from eval_pipeline.tracks.capabilities import ToJudge
from eval_pipeline_plugins.sql_equivalence.syntax.text import identical
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlCase, SqlTurn
from eval_pipeline_plugins.tracks.sql.metrics.judged import IDENTICAL
from eval_pipeline_plugins.tracks.sql.metrics.tables_read import CHANGES_DATA, NO_SQL
from eval_pipeline_plugins.tracks.sql.prompt import schema_text
from eval_pipeline_plugins.tracks.sql.responses.artefact import SqlAnswer
from eval_pipeline_plugins.tracks.sql.responses.evidence import DECIDED, EQUIVALENCE, EXECUTION, details_of, of_kind

NEVER = "the suite's options say that the judge is never asked"
DECIDED_WITHOUT = "decided by evidence, so the judge was not asked"


def to_judge(case: SqlCase, turn: SqlTurn, final: Attempt[SqlAnswer], evidence: Sequence[Evidence]) -> ToJudge | None:
    """Returns a turn's pair, with its value if no judge is needed; None if no SQL is expected.

    The query is compared with the accepted query of the same text, or else with the one that matches best by the
    evidence.
    """
    context, gold = case.context, turn.gold
    if not gold.accepted:
        return None
    if gold.may_change:
        return ToJudge("", gold.accepted[0], "", settled=(None, CHANGES_DATA))
    sql = final.artefact.sql if final.artefact is not None else None
    if sql is None:
        return ToJudge("", gold.accepted[0], "", settled=(0.0, NO_SQL))
    same = next((accepted for accepted in gold.accepted if identical(sql, accepted, context.database.dialect)), None)
    if same is not None:
        return ToJudge(sql, same, "", settled=(1.0, IDENTICAL))
    expected = details_of(evidence, EXECUTION).get("accepted", gold.accepted[0])
    if context.options.judge == "never":
        return ToJudge(sql, expected, "", settled=(None, NEVER))
    ladder = of_kind(evidence, EQUIVALENCE)
    if context.options.judge == "undecided" and ladder is not None and ladder.verdict in DECIDED:
        return ToJudge(sql, expected, "", settled=(None, DECIDED_WITHOUT))
    return ToJudge(sql, expected, schema_text(context.database.schema))
