"""The metrics of the track on plain values; confidence calibration; in what two queries differ."""

import asyncio
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.judge.judgement import Judgement
from eval_pipeline.table_comparison.contracts import Contract
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.parsing import parse_statement
from eval_pipeline_plugins.tracks.sql.cases.case_file import query_parts
from eval_pipeline_plugins.tracks.sql.metrics.calibration import confidence_calibration
from eval_pipeline_plugins.tracks.sql.metrics.judged import query_correctness
from eval_pipeline_plugins.tracks.sql.metrics.published import r_ves
from eval_pipeline_plugins.tracks.sql.metrics.tables_read import table_accuracy
from eval_pipeline_plugins.tracks.sql.metrics.validation import safety_validation, validation_accuracy
from eval_pipeline_plugins.tracks.sql.metrics.verdict import outcome_correct, outcome_reason, robust_match, strict_match
from eval_pipeline_plugins.tracks.sql.responses.structure import differences
from eval_pipeline_plugins.tracks.sql.validation.validator import validate
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("sql_metrics.yaml")
Golden = dict[str, Any]


class FixedJudge:
    """A judge that always says the same, and remembers what it was asked."""

    def __init__(self, said: Judgement) -> None:
        self.said, self.asked = said, list[tuple[str, str, str | None]]()

    async def judge(self, generated: str, expected: str, schema: str | None = None) -> Judgement:
        self.asked.append((generated, expected, schema))
        return self.said

    async def __aenter__(self) -> "FixedJudge":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


VERDICTS = {
    "safety_validation": lambda case: safety_validation(case["safety_valid"], case["should_be_safe"]),
    "validation_accuracy": lambda case: validation_accuracy(case["is_valid"], case["should_pass"]),
}


@pytest.mark.parametrize(("metric", "case"), [(name, case) for name in VERDICTS for case in GOLDEN[name]], ids=str)
def test_the_four_verdicts_on_safety_and_validation(metric: str, case: Golden) -> None:
    found = VERDICTS[metric](case)
    assert (found.value, found.label) == (case["value"], case["label"])
    if "reason" in case:
        assert found.reason == case["reason"]


def test_a_false_rejection_tells_the_validators_errors_and_what_decided() -> None:
    said = validate("SELECT nothing FROM nowhere", SqlSchema.from_mapping({"t": {"a": "INTEGER"}}))
    found = validation_accuracy(said.is_valid, True, said.errors)
    assert found.reason is not None
    assert "schema violation: there is no table nowhere" in found.reason
    assert found.details is not None
    assert found.details["category"] == "schema violation"
    assert found.details["errors"][0]["category"] == "schema violation"


@pytest.mark.parametrize("case", GOLDEN["table_accuracy"], ids=str)
def test_tables_in_common(case: Golden) -> None:
    found = table_accuracy(case["sql"], case["tables"])
    assert found.value == pytest.approx(case["value"])
    assert found.error is None


@pytest.mark.parametrize("sql", ["SELECT FROM WHERE", "SELEC * FORM x", "FOO BAR", "foo(bar)", "a.b", "1", "x = 1", ""])
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres", "mysql"])
def test_what_is_no_statement_has_no_tables_and_the_parsers_message(sql: str, dialect: str) -> None:
    found = table_accuracy(sql, ["users"], dialect)
    assert found.value == 0.0
    assert found.error
    assert table_accuracy(sql, [], dialect).value == 0.0
    said = validate(sql, None, dialect)
    assert [error.category for error in said.errors] == ["syntax error"]


@pytest.mark.parametrize("case", GOLDEN["r_ves"], ids=str)
def test_efficiency_is_the_root_of_birds_reward(case: Golden) -> None:
    found = r_ves(case["right"], case["ratio"])
    assert found.value == pytest.approx(sqrt(case["reward"]))
    assert found.details is not None
    assert found.details["reward"] == case["reward"]


def test_efficiency_without_a_result_is_null() -> None:
    assert r_ves(None, 1.0).value is None
    assert r_ves(True, None).value is None


@pytest.mark.parametrize("case", GOLDEN["outcome_correct"], ids=str)
@pytest.mark.parametrize("headline", ["execution_match", "robust", "strict"])
def test_what_a_right_outcome_is(case: Golden, headline: str) -> None:
    asked, on_data, needed = case.get("should_pass", True), case["on_data"], case["needed"]
    may = sorted(Contract(preset=case.get("compare", "expert")).overlooked(case.get("insisted", ())))
    refused = case.get("declined", False), case.get("blocked", False)
    found = outcome_correct(asked, *refused, headline, may, on_data, needed, case["equivalence"], "")
    if asked and headline != "execution_match" and on_data and not found.value:
        stands = [] in on_data
        assert ("generated databases" in (found.reason or "")) is (not needed or (headline == "strict" and stands))
        assert ("the same on the data" in (found.reason or "")) is (stands and (not needed or headline == "strict"))
    if asked and headline == "robust":
        assert robust_match(asked, may, on_data, needed, case["equivalence"]).value == found.value
    if asked and headline == "strict" and not any(refused):
        assert strict_match(asked, "SELECT 1", on_data, case["equivalence"]).value == found.value
    assert found.value == float(case[headline])
    assert found.reason


@pytest.mark.parametrize("case", GOLDEN["query_parts"], ids=str)
def test_complexity_counts_joins_predicates_subqueries_and_aggregates(case: Golden) -> None:
    assert query_parts(parse_statement(case["sql"])) == case["parts"]


def judged(generated: str, expected: str, judge: FixedJudge, **more: Any) -> Any:
    return asyncio.run(query_correctness(generated, expected, judge=judge, **more))


@pytest.mark.parametrize("generated", ["select a  from t;", "SELECT a\nFROM t", " SELECT a FROM t ; "])
def test_identical_text_is_right_without_asking(generated: str) -> None:
    judge = FixedJudge(Judgement(0.0))
    found = judged(generated, "SELECT a FROM t", judge)
    assert (found.value, found.reason) == (1.0, "Queries are identical")
    assert not judge.asked


@pytest.mark.parametrize("generated", ["SELECT A FROM t", "SELECT a FROM t WHERE x = 'B'", 'SELECT "a" FROM t'])
def test_another_name_or_filter_is_not_the_same_text(generated: str) -> None:
    judge = FixedJudge(Judgement(0.5, "partly", "a filter is missing", model="fake/judge"))
    found = judged(generated, "SELECT a FROM t", judge)
    assert (found.value, found.reason) == (0.5, "a filter is missing")
    assert judge.asked == [(generated, "SELECT a FROM t", None)]


TABLE = {"t": {"a": "INTEGER"}}


@pytest.mark.parametrize("schema", [TABLE, SqlSchema.from_mapping(TABLE), SqlSchema.from_mapping(TABLE).ddl()])
def test_the_judge_is_shown_the_schema_as_ddl(schema: Any) -> None:
    judge = FixedJudge(Judgement(1.0, "same", "alias"))
    judged("SELECT a AS b FROM t", "SELECT a FROM t", judge, schema=schema)
    assert judge.asked[0][2] == SqlSchema.from_mapping(TABLE).ddl()


def test_a_judge_out_of_time_is_an_error_with_value_zero() -> None:
    found = judged("SELECT b FROM t", "SELECT a FROM t", FixedJudge(Judgement(0.0, error="LLM judge timeout")))
    assert (found.value, found.error) == (0.0, "LLM judge timeout")


def test_without_a_key_nothing_is_judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("EVAL_HOME", str(tmp_path))
    found = asyncio.run(query_correctness("SELECT b FROM t", "SELECT a FROM t"))
    assert (found.value, found.reason, found.error) == (None, "no judge configured", None)


NO_DATA = {"execution": "no_data", "needed_on_data": None}


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"should_pass": False, "declined": True}, "declined"),
        ({"should_pass": False, "blocked": True}, "blocked"),
        ({"should_pass": False}, "not_refused"),
        ({"generated": None}, "no_sql"),
        ({"execution": "error", "equivalence": "undecided"}, "does_not_run"),
        ({"execution": None, "equivalence": None}, "does_not_run"),
        ({"execution": "different", "equivalence": "different", "needed_on_data": []}, "different_on_data"),
        ({"equivalence": "different"}, "refuted_on_unusual_database"),
        ({"equivalence": "different", "relaxations": None, "wrong_in": "meaning"}, "refuted_on_fitting_database"),
        ({"equivalence": "different", "relaxations": "duplicates"}, "overlooked"),
        ({"equivalence": "different", "relaxations": "duplicates", "wrong_in": "form"}, "different_in_form"),
        (NO_DATA | {"equivalence": "different", "relaxations": None}, "refuted_on_fitting_database"),
        (NO_DATA | {"equivalence": "undecided"}, "undecided_without_data"),
        (NO_DATA | {"equivalence": "agreed"}, "not_refuted"),
        ({"equivalence": "undecided"}, "not_refuted"),
    ],
)
def test_the_reason_says_what_decided(told: dict[str, Any], reason: str) -> None:
    usual = {"should_pass": True, "declined": False, "blocked": False, "generated": "SELECT 1", "execution": "match"}
    usual |= {"equivalence": "agreed", "needed_on_data": [[]], "relaxations": "none", "wrong_in": None}
    assert outcome_reason(**{**usual, **told}) == reason


CALIBRATED = golden("sql_calibration.yaml")
NOMINAL = {"high": 0.9, "medium": 0.7, "low": 0.5}


def answers(levels: dict[str, list[int]]) -> tuple[list[str], list[bool]]:
    """Confidences and correctness with so many right of so many."""
    said = [level for level, (_, n) in levels.items() for _ in range(n)]
    right = [place < good for good, n in levels.values() for place in range(n)]
    return said, right


@pytest.mark.parametrize("case", CALIBRATED, ids=lambda case: case["name"])
def test_the_score_and_its_meaning(case: dict[str, Any]) -> None:
    found = confidence_calibration(*answers(case["levels"]))
    if "at_most" in case:
        assert found.value is not None
        assert found.value <= case["at_most"]
    else:
        assert found.value == (None if case["score"] is None else pytest.approx(case["score"], abs=5e-5))
    assert found.reason == ". ".join(case["reason"])
    assert found.error is None


@given(st.lists(st.tuples(st.sampled_from(list(NOMINAL)), st.booleans()), min_size=20, max_size=60))
def test_the_brier_score_is_the_sum_of_its_parts_and_the_mean_square(pairs: list[tuple[str, bool]]) -> None:
    found = confidence_calibration([level for level, _ in pairs], [right for _, right in pairs]).details
    assert found is not None
    direct = sum((NOMINAL[level] - right) ** 2 for level, right in pairs) / len(pairs)
    assert found["brier"] == pytest.approx(direct)
    parts = found["brier_reliability"] - found["brier_resolution"] + found["brier_uncertainty"]
    assert parts == pytest.approx(direct)


def test_the_error_is_what_reliability_lacks() -> None:
    found = confidence_calibration(*answers({"high": [8, 10], "low": [6, 10]})).details
    assert found is not None
    assert found["ece"] == pytest.approx(0.1)
    assert found["reliability"] == pytest.approx(0.9)
    assert found["resolution"] == pytest.approx(0.5)
    assert [level["level"] for level in found["levels"]] == ["high", "low"]


def test_answers_without_a_level_are_left_out() -> None:
    said, right = answers({"high": [9, 10], "low": [5, 10]})
    with_silent = confidence_calibration([*said, None, None], [*right, False, False])
    assert with_silent == confidence_calibration(said, right)


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown confidence 'sure'; known: high, medium, low"):
        confidence_calibration(["sure"], [True])


def test_lists_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 confidences for 1 answers"):
        confidence_calibration(["high", "low"], [True])


def test_confidence_that_knows_nothing_is_rarely_called_accurate() -> None:
    """20 turns whose levels are drawn by themselves: without the interval 14 to 18% of them got the words."""
    rng, called = Random(20), 0
    for _ in range(2000):
        said = [rng.choice(list(NOMINAL)) for _ in range(20)]
        right = [rng.random() < 0.7 for _ in range(20)]
        called += (confidence_calibration(said, right).reason or "").startswith("Confidence levels accurately")
    assert called <= 0.03 * 2000


def test_confidence_that_tells_right_from_wrong_is_called_accurate() -> None:
    rng, called = Random(21), 0
    for _ in range(200):
        said = [rng.choice(list(NOMINAL)) for _ in range(300)]
        right = [rng.random() < NOMINAL[level] for level in said]
        called += (confidence_calibration(said, right).reason or "").startswith("Confidence levels accurately")
    assert called >= 0.9 * 200


COUNTED = "SELECT COUNT(*) FROM t AS x WHERE x.a > 1 AND s NOT LIKE 'b%' AND d IS NOT NULL"
JOINED = "SELECT DISTINCT x.name FROM t AS x JOIN u ON x.id = u.t_id WHERE status = 'paid' ORDER BY x.name LIMIT 3"


@pytest.mark.parametrize(
    ("generated", "accepted", "expected"),
    [
        ("SELECT COUNT(*) FROM t WHERE d IS NOT NULL AND NOT s LIKE 'b%' AND a > 1", COUNTED, {}),
        ("SELECT COUNT(*) FROM t WHERE NOT (s LIKE 'b%' OR d IS NULL) AND a > 1", COUNTED, {}),
        (
            "SELECT COUNT(*) FROM t WHERE a > 1 AND s LIKE 'b%' AND d IS NOT NULL",
            COUNTED,
            {"filters": "`s LIKE 'b%'` not expected"},
        ),
        ("SELECT COUNT(*) FROM t WHERE a > 1 AND s NOT LIKE 'b%' AND d IS NULL", COUNTED, {"filters": "d IS NULL"}),
        ("SELECT COUNT(*) FROM t WHERE a > 1 AND s NOT LIKE 'b%'", COUNTED, {"filters": "`d IS NOT NULL` is missing"}),
        (
            "SELECT COUNT(DISTINCT a) FROM t WHERE a > 1 AND s NOT LIKE 'b%' AND d IS NOT NULL",
            COUNTED,
            {"aggregates": "COUNT(DISTINCT a)", "columns": "COUNT(*)"},
        ),
        (
            "SELECT COUNT(*) FROM u WHERE a >= 1 AND s NOT LIKE 'b%' AND d IS NOT NULL",
            COUNTED,
            {
                "tables": "table `t` is missing, `u` not expected",
                "filters": "`a > 1` is missing, `a >= 1` not expected",
            },
        ),
        ("SELECT COUNT(* FROM", COUNTED, {}),
        (
            "SELECT SUM(a), (SELECT MAX(b) FROM u) FROM t",
            "SELECT SUM(t.a) AS n, (SELECT MAX(u.b) AS m FROM u) FROM t",
            {},
        ),
        (
            "SELECT a FROM t WHERE s = 'Paid'",
            "SELECT a FROM t WHERE s = 'paid'",
            {"filters": "`s = 'paid'` is missing"},
        ),
        (
            "SELECT a FROM t WHERE t.id NOT IN (1, 2) AND LOWER(s) IS NOT NULL",
            "SELECT a FROM t",
            {"filters": "`id NOT IN (1, 2)`, `LOWER(s) IS NOT NULL` not expected"},
        ),
        (
            "SELECT DISTINCT T1.NAME AS n FROM t T1, u WHERE u.t_id = T1.id AND 'paid' = status ORDER BY NAME LIMIT 3",
            JOINED,
            {},
        ),
        (
            "SELECT name FROM t LEFT JOIN u ON t.id = t_id GROUP BY name ORDER BY name DESC LIMIT 3",
            JOINED,
            {
                "joins": "LEFT JOIN",
                "filters": "`status = 'paid'` is missing",
                "groups": "grouping `name` not expected",
                "columns": "DISTINCT",
                "orders": "name DESC",
            },
        ),
        ("SELECT a FROM t EXCEPT SELECT a FROM t", "SELECT a FROM t UNION SELECT a FROM t", {"sets": "`EXCEPT`"}),
        ("SELECT a FROM t UNION ALL SELECT a FROM t", "SELECT a FROM t UNION SELECT a FROM t", {"sets": "`UNION ALL`"}),
        (
            "SELECT a FROM t WHERE a = 1 OR b = 2",
            "SELECT a FROM t WHERE a = 1 AND b = 2",
            {"filters": "a = 1 OR b = 2"},
        ),
        (
            "SELECT x.a FROM t AS x JOIN u AS y ON x.id = y.id",
            "SELECT x.a FROM t AS x JOIN u AS y ON x.id = y.t_id",
            {"joins": "join `t.id = u.t_id` is missing, `t.id = u.id` not expected"},
        ),
    ],
)
def test_queries_differ_in_parts_that_are_named(generated: str, accepted: str, expected: dict[str, str]) -> None:
    found = differences(generated, accepted, "duckdb")
    assert {part: words for part, words in found.items() if part not in expected or expected[part] not in words} == {}
    assert expected.keys() <= found.keys()


VIEWS = SqlSchema.from_ddl(
    "CREATE TABLE t (id INT, name TEXT); CREATE TABLE u (t_id INT, cost INT, status TEXT); CREATE TABLE w (id INT);"
    "CREATE VIEW paid AS SELECT t.name, u.cost FROM t JOIN u ON u.t_id = t.id WHERE u.status = 'paid';"
    "CREATE VIEW sums AS SELECT t_id, SUM(cost) AS total FROM u GROUP BY t_id"
)


@pytest.mark.parametrize(
    ("generated", "accepted", "expected"),
    [
        ("SELECT cost FROM u WHERE status = 'paid'", "SELECT cost FROM paid", {}),
        ("SELECT cost FROM u WHERE status = 'open'", "SELECT cost FROM paid", {"filters"}),
        ("SELECT AVG(cost) AS total FROM u", "SELECT AVG(total) FROM sums", {"aggregates", "groups", "columns"}),
        ("SELECT cost FROM paid", "SELECT u.cost FROM u WHERE status = 'paid'", {"tables", "joins"}),
        ("SELECT s.total FROM sums AS s JOIN w ON s.t_id = w.id", "SELECT total FROM sums", {"tables", "joins"}),
        ("SELECT total FROM sums", "SELECT total FROM sums JOIN w ON t_id = w.id", {"tables", "joins"}),
    ],
)
def test_what_a_view_says_is_compared_with_a_query_that_does_not_read_it(
    generated: str, accepted: str, expected: set[str]
) -> None:
    assert differences(generated, accepted, "duckdb", VIEWS).keys() == {*expected}


def test_missing_tables_are_named_in_the_same_order_in_each_process() -> None:
    found = differences("SELECT 1 FROM a", "SELECT 1 FROM e, c, d, b, g, f", "duckdb")
    assert found["tables"].startswith("table `b`, `c`, `d`")
