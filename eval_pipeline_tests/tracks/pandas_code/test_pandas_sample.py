"""The shipped suite: what it holds, that its gold is right, and that its tables are what the generator writes."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pandas as pd

from eval_pipeline.core.model import Case
from eval_pipeline.stages.checks.verdicts import check_ends
from eval_pipeline.tracks.pandas_code.cases.expected import expected_result
from eval_pipeline.tracks.pandas_code.track import TRACK
from eval_pipeline_tests.support import SHIPPED
from eval_pipeline_tests.tracks.pandas_code.helpers import needs_sandbox, scores_of, unmeasured

SAMPLE = SHIPPED / "suites" / "pandas_sample"


def _tables(folder: Path) -> dict[str, pd.DataFrame]:
    read = {".csv": pd.read_csv, ".parquet": pd.read_parquet}
    return {path.stem: read[path.suffix](path) for path in folder.iterdir()}


def test_the_generator_writes_the_same_rows_again(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(SHIPPED / "generators" / "pandas_sample"), str(tmp_path)], check=True)
    written, shipped = _tables(tmp_path), _tables(SAMPLE / "tables")
    assert written.keys() == shipped.keys()
    for name, frame in written.items():
        pd.testing.assert_frame_equal(frame, shipped[name])


def test_the_tables_have_what_trips_code_up() -> None:
    tables = _tables(SAMPLE / "tables")
    sizes = {name: len(frame) for name, frame in tables.items()}
    assert sum(1_000 <= rows <= 100_000 for rows in sizes.values()) >= 6
    assert sum(path.stat().st_size for path in (SAMPLE / "tables").iterdir()) < 2_000_000
    assert tables["products"]["product_id"].duplicated().sum() == 25
    assert tables["readings"].duplicated().sum() >= 400
    assert 0.1 < tables["sales"]["customer_id"].isna().mean() < 0.2
    assert not set(tables["sales"]["customer_id"].dropna()) <= set(tables["customers"]["customer_id"])
    assert {"n/k"} < set(tables["staff"]["salary"])
    assert {"1", "senior"} < set(tables["staff"]["grade"])
    assert str(tables["tickets"]["opened_at"].dtype).startswith("datetime64")


@needs_sandbox
def test_the_suite_is_as_large_as_promised(sample: dict[str, Case]) -> None:
    turns = [turn for case in sample.values() for turn in case.turns]
    assert len(turns) >= 80
    assert all(turn.gold.code for turn in turns)
    tags = Counter(tag for case in sample.values() for tag in case.tags)
    wanted = "filter top_n bottom_n multi_key join pivot window dates text missing mixed".split()
    assert {tag: tags[tag] for tag in wanted if tags[tag] < 2} == {}
    assert sum(len(case.turns) > 1 for case in sample.values()) >= 4
    assert len({name for case in sample.values() for name in case.context.paths}) >= 6


@needs_sandbox
def test_every_reference_code_gives_a_result_with_rows(sample: dict[str, Case]) -> None:
    assert [problem for case in sample.values() for problem in TRACK.check_gold(case)] == []
    turns = [turn for case in sample.values() for turn in case.turns]
    results = {turn.id: expected_result(turn.gold) for turn in turns}
    assert [name for name, result in results.items() if result["kind"] == "frame" and not result["rows"]] == []


@needs_sandbox
def test_gold_scores_one_and_no_answer_zero(sample: dict[str, Case]) -> None:
    with unmeasured():
        verdict = check_ends(TRACK, Random(5).sample([*sample.values()], 2))
    assert verdict.passed, verdict.facts


@needs_sandbox
def test_the_reference_code_does_what_its_question_asks(sample: dict[str, Case]) -> None:
    """Understanding and coverage of the gold: where the metrics miss something, the question asks for it oddly."""
    drawn = Random(7).sample([case for case in sample.values() if len(case.turns) == 1], 20)
    found = scores_of([(case, 0, [TRACK.oracle(case.turns[0])]) for case in drawn])
    for name in ("quality", "performance", "understanding", "coverage", "overall"):
        assert {one[f"{name}_score"] for one in found} == {1.0}
    for name in ("understanding_score_from_words", "coverage_score_from_words"):
        known = [one[name] for one in found if one[name] is not None]
        assert len(known) > 10
        assert sum(known) / len(known) > 0.9
