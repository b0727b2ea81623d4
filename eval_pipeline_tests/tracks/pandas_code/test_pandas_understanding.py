"""Understanding of questions by code, requirements covered, and quality: worked by hand, and what holds of all."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline_plugins.tracks.pandas_code.analysis.columns import FRAME_NAMES
from eval_pipeline_plugins.tracks.pandas_code.analysis.quality import QualityFinding, quality_findings
from eval_pipeline_plugins.tracks.pandas_code.analysis.row_wise import ANTI_PATTERNS
from eval_pipeline_plugins.tracks.pandas_code.analysis.snippet import read_snippet
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import DEEPEST
from eval_pipeline_plugins.tracks.pandas_code.metrics.coverage import WEIGHTS as COVERAGE_WEIGHTS
from eval_pipeline_plugins.tracks.pandas_code.metrics.coverage import requirement_coverage
from eval_pipeline_plugins.tracks.pandas_code.metrics.quality import PENALTIES, kind_of, quality_score
from eval_pipeline_plugins.tracks.pandas_code.metrics.understanding import WEIGHTS, prompt_understanding
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("pandas_understanding.yaml")
TABLES = GOLDEN["tables"]
Golden = dict[str, Any]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_columns_phrases_and_statistics_taken_up(case: Golden) -> None:
    found = prompt_understanding(case["q"], case["code"], TABLES)
    assert found.details is not None
    details: Any = found.details
    assert [details[part] for part in WEIGHTS] == pytest.approx(case["parts"], abs=1e-4)
    assert found.value == pytest.approx(sum(case["parts"]), abs=1e-4)
    if found.reason is None:
        letters = zip("cps", WEIGHTS, strict=True)
        assert "".join(letter for letter, part in letters if part in details["not_applicable"]) == case.get("na", "")
    if "mentioned" in case:
        assert details["mentioned_columns"] == case["mentioned"]
    if "used" in case:
        assert details["extracted_columns"] == case["used"]


def test_the_statistics_of_the_code_are_told() -> None:
    code = 'result = df.groupby("region").agg({"amount": ["mean", np.max], "quantity": lambda s: s.sum()})'
    details: Any = prompt_understanding("", code, TABLES).details
    assert sorted(details["statistical_operations"]) == ["groupby", "max", "mean", "sum"]


def test_a_question_that_names_nothing_gives_full_marks_to_any_code() -> None:
    found = prompt_understanding("Hello?", "result = 1", TABLES)
    assert found.value == 1.0
    assert found.details is not None and found.details["not_applicable"] == list(WEIGHTS)


def test_the_names_of_frames_are_those_of_pandas() -> None:
    public = {name for name in dir(pd.DataFrame) if not name.startswith("_")}
    assert public | {"str", "dt", "cat", "dtype"} == FRAME_NAMES


@pytest.mark.parametrize(
    "code",
    [
        "result = " + "(" * 5000,
        "result = " + "-" * 5000 + "1",
        "result = df" + ".head()" * DEEPEST,
        "result = 1" + " + 1" * 3000,
        "\0",
        "result = '\ud800'",
        "a = [b, b]\nb = [a, a]\nresult = df[a]",
        "\n".join(f"a{n} = [a{n + 1}, a{n + 1}]" for n in range(200)) + "\nresult = df[a0].groupby(a0).query(a0)",
        "\n".join(f"a{n} = a{n + 1} & a{n + 1}" for n in range(200)) + "\nresult = df[a0]",
        "a = a.sort_values()\nresult = a.head(3)",
        "df['x'] = df['x']\nresult = df[df['x']]",
        "result = df.query('(' * 5000)\nresult = df.query('" + "(" * 5000 + "')",
    ],
    ids=range(12),
)
def test_code_that_is_made_to_break_its_reader_is_read_or_given_up(code: str) -> None:
    found = prompt_understanding("Top 3 regions by amount where amount is above 5", code, TABLES)
    assert found.value is not None and (found.value == 0) == (read_snippet(code) is None)


_pieces = st.sampled_from(
    [
        *"df ['region'] .amount .groupby('region') .head(3) .sort_values('amount') ( ) [ ] = + result & > 5".split(),
        *"in , if for == not .agg({'amount':'sum'}) [df.amount>5] 'text'".split(),
        *("\n", "lambda x: ", ".query('a > 1')", ".merge(df, on='region')"),
    ]
)
_words = st.sampled_from(
    "top three 5 regions by amount average total where between and or greater than at least per group only each "
    "unit price sort descending order_id 'North' , . how many count active > %".split()
)


@given(st.lists(_words, max_size=15).map(" ".join), st.lists(_pieces, max_size=12).map("".join))
def test_every_pair_of_question_and_code_has_a_score_that_is_the_sum_of_its_parts(question: str, code: str) -> None:
    found = prompt_understanding(question, code, TABLES)
    details: Any = found.details
    assert found.value == pytest.approx(sum(details[part] for part in WEIGHTS))
    assert all(0 <= details[part] <= most for part, most in WEIGHTS.items())
    assert set(details["extracted_columns"]) <= {column for columns in TABLES.values() for column in columns}


@given(st.text(), st.text())
def test_any_text_can_be_read(question: str, code: str) -> None:
    assert 0 <= (prompt_understanding(question, code, TABLES).value or 0) <= 1


COVERAGE = golden("pandas_coverage.yaml")
COVERED_TABLES = COVERAGE["tables"]


@pytest.mark.parametrize("case", COVERAGE["cases"], ids=lambda case: case["name"])
def test_filters_groups_orders_and_joins_covered(case: Golden) -> None:
    found = requirement_coverage(case["q"], case["code"], COVERED_TABLES)
    details: Any = found.details
    assert [details[part] for part in COVERAGE_WEIGHTS] == pytest.approx(case["parts"], abs=1e-4)
    assert details["missing_requirements"] == case["missing"]
    weighed = sum(weight * part for weight, part in zip((0.3, 0.3, 0.2, 0.2), case["parts"], strict=True))
    assert found.value == pytest.approx(weighed, abs=1e-4)


def test_with_a_single_table_no_join_is_asked_for() -> None:
    question, code = "Combine region and status into one text", "result = orders.region + orders.status"
    details: Any = requirement_coverage(question, code, {"orders": COVERED_TABLES["orders"]}).details
    assert details["join_conditions_coverage"] == 1
    details = requirement_coverage(question, code, {}).details
    assert details["join_conditions_coverage"] == 0


CONDITIONS = {
    "quantity is greater than 5": "orders['quantity'] > 5",
    "unit price is at least 10": "orders['unit_price'] >= 10",
    "region is 'North'": "orders['region'] == 'North'",
    "status is not equal to 'open'": "orders['status'] != 'open'",
}


@given(
    st.lists(st.sampled_from(sorted(CONDITIONS)), min_size=1, max_size=4, unique=True),
    st.sampled_from(["and", "or"]),
    st.integers(0, 4),
)
def test_a_filter_covers_the_share_of_the_conditions_that_it_has(stated: list[str], word: str, kept: int) -> None:
    have = stated[: min(kept, len(stated))]
    chosen = "".join(f"({CONDITIONS[text]}) {'&' if word == 'and' else '|'} " for text in have)[:-3]
    code = f"result = orders[{chosen}]" if have else "result = orders"
    details: Any = requirement_coverage(f"Orders where {f' {word} '.join(stated)}", code, COVERED_TABLES).details
    assert details["filter_conditions_coverage"] == pytest.approx(len(have) / len(stated))


@given(st.lists(st.sampled_from(["region", "status", "quantity"]), min_size=1, unique=True), st.data())
def test_a_grouping_covers_the_share_of_the_columns_that_it_has(asked: list[str], data: st.DataObject) -> None:
    used = data.draw(st.lists(st.sampled_from(asked), unique=True, min_size=1))
    listed = asked[0] if len(asked) == 1 else f"{', '.join(asked[:-1])} and {asked[-1]}"
    code = f"result = orders.groupby({used!r}).size()"
    details: Any = requirement_coverage(f"Number of orders by {listed}", code, COVERED_TABLES).details
    assert details["groupby_columns_coverage"] == pytest.approx(len(used) / len(asked))


@given(st.text(), st.text())
def test_any_text_covers_something_or_nothing(question: str, code: str) -> None:
    found = requirement_coverage(question, code, COVERED_TABLES)
    details: Any = found.details
    assert found.value == pytest.approx(sum(weight * details[part] for part, weight in COVERAGE_WEIGHTS.items()))


DOCS = Path(__file__).parents[2]
QUALITY = golden("pandas_quality.yaml")


@pytest.fixture(scope="module")
def findings() -> dict[str, list[QualityFinding]]:
    """Of all cases, by a single call."""
    found = quality_findings([case["code"] for case in QUALITY], [case.get("tables", ["df"]) for case in QUALITY])
    return {case["name"]: of_case for case, of_case in zip(QUALITY, found, strict=True)}


@pytest.mark.parametrize("case", QUALITY, ids=lambda case: case["name"])
def test_what_is_found_with_its_line_and_what_it_costs(case: Golden, findings: dict[str, list[QualityFinding]]) -> None:
    found = findings[case["name"]]
    assert sorted(f"{finding.rule}:{finding.line}" for finding in found) == sorted(case["rules"])
    scored = quality_score(read_snippet(case["code"]), found)
    assert scored.value == pytest.approx(case["score"])
    details: Any = scored.details
    assert [told["line"] for told in details["findings"]] == [finding.line for finding in found]
    assert scored.value == pytest.approx(0 if scored.reason else 1 - sum(details["penalties"].values()))


def test_a_snippet_alone_is_found_the_same_in_as_among_others() -> None:
    codes = ["import os\nresult = 1", "x = (", "result = df.iterrows()"]
    assert quality_findings(codes) == [quality_findings([code])[0] for code in codes]
    assert quality_findings([]) == []


def test_messages_speak_of_the_code_and_not_of_how_it_was_checked(findings: dict[str, list[QualityFinding]]) -> None:
    (found,) = findings["complex code outside functions"]
    assert found.message == "the code outside functions is too complex (12 > 10)"


def test_every_row_wise_pattern_is_met_in_a_case() -> None:
    met = {rule.split(":")[0] for case in QUALITY for rule in case["rules"]}
    assert set(ANTI_PATTERNS) <= met
    assert {kind_of(rule) for rule in met} == set(PENALTIES)


def test_the_table_of_penalties_in_the_guide_is_the_one_that_counts() -> None:
    guide = (DOCS.parent / "docs" / "pandas.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \|.*\| ([\d.]+) \| ([\d.]+) \|$", guide, re.MULTILINE)
    assert {kind: (float(each), float(most)) for kind, each, most in rows} == {
        kind: (penalty.each, penalty.most) for kind, penalty in PENALTIES.items()
    }


rules = st.sampled_from(["F401", "E701", "B006", "PD002", "C901", "E999", *ANTI_PATTERNS])


@given(st.lists(rules), rules)
def test_more_findings_never_make_code_better(found: list[str], another: str) -> None:
    written = read_snippet("result = 1")
    fewer, more = (
        quality_score(written, [QualityFinding(rule, 1, "") for rule in listed]).value
        for listed in (found, [*found, another])
    )
    assert fewer is not None and more is not None
    assert 0 <= more <= fewer <= 1


@settings(max_examples=25)
@given(st.lists(st.text(), max_size=3))
def test_any_text_has_findings_or_none(codes: list[str]) -> None:
    found = quality_findings(codes)
    for code, of_code in zip(codes, found, strict=True):
        assert not of_code or read_snippet(code) is not None
        assert all(1 <= finding.line <= code.count("\n") + code.count("\r") + 2 for finding in of_code)
