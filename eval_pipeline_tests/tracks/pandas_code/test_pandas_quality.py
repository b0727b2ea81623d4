"""Quality of code: cases worked by hand, and what holds of all."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.tracks.pandas_code.analysis.quality import QualityFinding, quality_findings
from eval_pipeline.tracks.pandas_code.analysis.row_wise import ANTI_PATTERNS
from eval_pipeline.tracks.pandas_code.analysis.snippet import read_snippet
from eval_pipeline.tracks.pandas_code.metrics.quality import PENALTIES, code_quality, kind_of, quality_score
from eval_pipeline_tests.goldens import golden

TESTS = Path(__file__).parents[2]
GOLDEN = golden("pandas_quality.yaml")
Golden = dict[str, Any]


@pytest.fixture(scope="module")
def findings() -> dict[str, list[QualityFinding]]:
    """Of all cases, by a single call."""
    found = quality_findings([case["code"] for case in GOLDEN], [case.get("tables", ["df"]) for case in GOLDEN])
    return {case["name"]: of_case for case, of_case in zip(GOLDEN, found, strict=True)}


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
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
    assert code_quality(codes[0]).value == pytest.approx(0.9)
    assert quality_findings([]) == []


def test_messages_speak_of_the_code_and_not_of_how_it_was_checked(findings: dict[str, list[QualityFinding]]) -> None:
    (found,) = findings["complex code outside functions"]
    assert found.message == "the code outside functions is too complex (12 > 10)"


def test_every_row_wise_pattern_is_met_in_a_case() -> None:
    met = {rule.split(":")[0] for case in GOLDEN for rule in case["rules"]}
    assert set(ANTI_PATTERNS) <= met
    assert {kind_of(rule) for rule in met} == set(PENALTIES)


def test_the_table_of_penalties_in_the_guide_is_the_one_that_counts() -> None:
    guide = (TESTS.parent / "docs" / "pandas.md").read_text()
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
    assert fewer is not None
    assert more is not None
    assert 0 <= more <= fewer <= 1


@settings(max_examples=25)
@given(st.lists(st.text(), max_size=3))
def test_any_text_has_findings_or_none(codes: list[str]) -> None:
    found = quality_findings(codes)
    for code, of_code in zip(codes, found, strict=True):
        assert not of_code or read_snippet(code) is not None
        assert all(1 <= finding.line <= code.count("\n") + code.count("\r") + 2 for finding in of_code)
