"""What turns can be limited to that no column tells: how far they got, whether they are flaky, whether reviewed."""

from collections.abc import Callable, Mapping

from eval_pipeline.core.covering.coverage import ITS_OWN_DOING
from eval_pipeline.store.published.ddl import text
from eval_pipeline.view.evaluation import StoredEvaluation, of_earlier
from eval_pipeline.view.filtering.filter import FLAKY, JUDGED_OTHERWISE, UNANSWERED, UNREADABLE, UNREVIEWED

_TURN = "(r.turn_id, r.sample)"
_LEAST_CHANGES = 2
"""One change over dates is a loss or a gain; a turn that changes back as well is flaky."""
_MOST_DATES = 8
"""The latest dates that count: more would take memory, and tell of a model of long ago."""


def of_evaluation(evaluation: StoredEvaluation, alias: str) -> str:
    """Returns the condition that a row belongs to the evaluation."""
    found = evaluation.partition
    return (
        f"{of_version(evaluation, alias)} "
        f"AND {alias}.eval_date = DATE {text(found.eval_date.isoformat())}{of_earlier(found, f'{alias}.')}"
    )


def of_version(evaluation: StoredEvaluation, alias: str) -> str:
    """Returns the condition that a row belongs to the suite and model version of the evaluation, of any date."""
    found = evaluation.partition
    return f"{alias}.suite = {text(found.suite)} AND {alias}.model_version = {text(found.model_version)}"


def of_latest_dates(evaluation: StoredEvaluation, alias: str) -> str:
    """Returns the condition that a row is of one of the latest dates of the evaluation's model version."""
    dates = evaluation.model_versions[evaluation.partition.model_version][:_MOST_DATES]
    return f"{of_version(evaluation, alias)} AND {alias}.eval_date >= DATE {text(dates[-1].isoformat())}"


def answered(alias: str) -> str:
    """Returns the condition that an attempt got a response (`core.covering.coverage.Reached`); never NULL."""
    own = ", ".join(map(text, sorted(ITS_OWN_DOING)))
    return f"({alias}.stop_reason IS NOT NULL OR coalesce({alias}.call_error IN ({own}), false))"


def only_sql(evaluation: StoredEvaluation, name: str) -> str:
    """Returns one of the conditions of `filter.ONLY` on rows `r` of `turn_results`."""
    return _CONDITIONS[name](evaluation)


def _unanswered(evaluation: StoredEvaluation) -> str:
    return f"{_TURN} NOT IN ({_attempts(evaluation)} AND {answered('a')})"


def _unreadable(evaluation: StoredEvaluation) -> str:
    """As `Reached.readable`: what could be read of the last attempt counts."""
    read = f"bool_or({answered('a')}) AND arg_max(a.artefact IS NULL, a.number)"
    return f"{_TURN} IN ({_attempts(evaluation)}\n    GROUP BY a.turn_id, a.sample HAVING {read})"


def _flaky(evaluation: StoredEvaluation) -> str:
    """Of other dates, only turns with the same question and gold tell anything about this one."""
    mine = f"FROM {evaluation.table('turn_results')} AS m WHERE {of_evaluation(evaluation, 'm')}"
    samples = f"SELECT m.turn_id {mine} GROUP BY m.turn_id HAVING count(DISTINCT m.correct) > 1"
    changed = "f.correct <> lag(f.correct) OVER (PARTITION BY f.turn_id, f.sample ORDER BY f.eval_date) AS changed"
    same = " AND ".join(f"m.{name} IS NOT DISTINCT FROM f.{name}" for name in ("question", "expected"))
    dates = (
        f"SELECT d.turn_id, d.sample FROM (\n      SELECT f.turn_id, f.sample, {changed}\n      "
        f"FROM turn_results AS f JOIN (SELECT * {mine}) AS m\n        "
        f"ON m.turn_id = f.turn_id AND m.sample = f.sample AND {same}\n      "
        f"WHERE {of_latest_dates(evaluation, 'f')} AND f.correct IS NOT NULL) AS d\n    "
        f"GROUP BY d.turn_id, d.sample HAVING count(*) FILTER (WHERE d.changed) >= {_LEAST_CHANGES}"
    )
    return f"(r.turn_id IN ({samples})\n    OR {_TURN} IN ({dates}))"


def _unreviewed(evaluation: StoredEvaluation) -> str:
    """A review is of the response that was seen; those written since the store was published are named one by one."""
    of_model = of_version(evaluation, "v")
    reviewed = f"SELECT v.turn_id, v.response_hash FROM reviews AS v WHERE {of_model}"
    if evaluation.reviewed_since:
        rows = ", ".join(f"({text(turn)}, {text(response)})" for turn, response in evaluation.reviewed_since)
        reviewed += f"\n      UNION ALL VALUES {rows}"
    last = "QUALIFY row_number() OVER (PARTITION BY a.turn_id, a.sample ORDER BY a.number DESC) = 1"
    responses = (
        f"SELECT a.turn_id, a.sample, left(sha256(coalesce(a.response, '')), 32) AS response_hash\n      "
        f"FROM {evaluation.table('attempts')} AS a WHERE {of_evaluation(evaluation, 'a')}\n      "
        f"AND a.turn_id IN (SELECT turn_id FROM reviewed) {last}"
    )
    return (
        f"{_TURN} NOT IN (WITH reviewed AS ({reviewed})\n    "
        f"SELECT s.turn_id, s.sample FROM ({responses}) AS s SEMI JOIN reviewed USING (turn_id, response_hash))"
    )


def theirs(alias: str) -> str:
    """Returns the verdict of the tool that an attempt was recorded by, as in the view `source_verdicts`."""
    return f"({alias}.metadata->>{text('$.source.correct')})::BOOLEAN"


def _judged_otherwise(evaluation: StoredEvaluation) -> str:
    """As the view `source_verdicts`, which knows the newest evaluations only."""
    return f"(r.turn_id, r.sample, NOT r.correct) IN ({_attempts(evaluation, theirs('a'))} AND a.number = 0)"


def _attempts(evaluation: StoredEvaluation, further: str = "") -> str:
    table, mine = evaluation.table("attempts"), of_evaluation(evaluation, "a")
    columns = ", ".join(filter(None, ("a.turn_id, a.sample", further)))
    return f"SELECT {columns} FROM {table} AS a\n    WHERE {mine}"


_CONDITIONS: Mapping[str, Callable[[StoredEvaluation], str]] = {
    FLAKY: _flaky,
    UNANSWERED: _unanswered,
    UNREADABLE: _unreadable,
    UNREVIEWED: _unreviewed,
    JUDGED_OTHERWISE: _judged_otherwise,
}
