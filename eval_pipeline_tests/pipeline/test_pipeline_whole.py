"""What is published of evaluations that were cut off or do not pass their checks: all of one or nothing new."""

from pathlib import Path

import pytest

from eval_pipeline.chain.wholeness import why_not_whole
from eval_pipeline.core.model import Partition
from eval_pipeline.stages import score
from eval_pipeline.workspace.runs import RunContext, record_run
from eval_pipeline_tests.chains import INGESTING, compared, ran, ran_of_suite
from eval_pipeline_tests.support import DAY, Lab, Puppet, case, number

PARTITION = Partition("small", "puppet", DAY)
LACKS = {
    "generations": "recovery_attempts that were not made from its generations as they are now",
    "recovery_attempts": "no table of its track yet",
    "evidence": "no table of its track yet",
    "turn_metrics": "no statistics",
}
"""The last stage that was made anew → what then keeps the evaluation from being published."""
STAGES = tuple(LACKS)


@pytest.fixture
def lacking(small: Lab, module_folder: Path) -> Lab:
    """The suite is evaluated, and a turn got lost."""

    def evaluate(lab: Lab) -> None:
        real = score.attempted_turns
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(score, "attempted_turns", lambda *given: iter(list(real(*given))[1:]))
            lab.evaluate()

    return small.made_once(module_folder / "lacking", evaluate)


@pytest.fixture
def two_suites(small: Lab, module_folder: Path) -> Lab:
    """`small` and another suite, both published."""

    def publish(lab: Lab) -> None:
        lab.suite("other", [case("one", ("50", 50.0))])
        lab.evaluate("other", publish=True)
        lab.evaluate(publish=True)

    return small.made_once(module_folder / "two suites", publish)


def remade_up_to(lab: Lab, stage: str) -> None:
    """The evaluation made anew, with other answers, by a process that was killed after the stage."""
    Puppet.answer = staticmethod(lambda call: number(-1))
    workspace, run = lab.workspace(), RunContext("killed", "fresh")
    ran(workspace, PARTITION, *STAGES[: STAGES.index(stage) + 1], run=run)


def damage_the_store(lab: Lab) -> None:
    """So that the next publisher has to build it anew, unasked."""
    lab.home.store.write_bytes(b"junk")


def test_what_was_half_remade_stays_as_it_was_published(published: Lab) -> None:
    compared(published.workspace(), "small")
    published.stage("published")
    before = published.store_contents()
    # What the evaluation before had made beside the answers is kept with it, and no longer in the place of the newest.
    for stage, lacks in LACKS.items():
        remade_up_to(published, stage)
        assert (why_not_whole(published.workspace(), PARTITION) or "").startswith(f"has {lacks}"), stage
    said = published.cli("publish")
    assert said.code == 1
    assert f"small · puppet · 2026-03-01 has {lacks}" in said.err
    assert "; it is not published until a run has completed it" in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert published.store_contents() == before
    published.evaluate(epoch="fresh", run_id="again")
    assert published.cli("publish").code == 0
    assert published.sql("SELECT DISTINCT answer FROM turn_results") == [("-1",)]


def test_a_full_publish_leaves_out_what_is_not_whole_and_says_so(two_suites: Lab) -> None:
    remade_up_to(two_suites, "evidence")
    said = two_suites.cli("publish", "--full")
    assert said.code == 1
    assert "small · puppet · 2026-03-01 has no table of its track yet" in said.err
    for table in ("turn_results", "attempts", "runs", "statistics"):
        assert two_suites.sql(f"SELECT DISTINCT suite FROM {table}") == [("other",)], table


def test_an_unasked_rebuild_leaves_out_what_is_not_whole_but_its_own(two_suites: Lab) -> None:
    remade_up_to(two_suites, "generations")
    damage_the_store(two_suites)
    made = two_suites.evaluate("other", publish=True)["published"]
    assert two_suites.sql("SELECT DISTINCT suite FROM turn_results") == [("other",)]
    (sentence,) = made.facts["left_out"]
    assert sentence.startswith("small · puppet · 2026-03-01 has recovery_attempts that were not made from its gen")
    two_suites.evaluate(epoch="fresh", publish=True)
    assert two_suites.sql("SELECT DISTINCT suite FROM turn_results ORDER BY ALL") == [("other",), ("small",)]


def test_what_was_never_completed_is_not_published(evaluated: Lab) -> None:
    workspace = evaluated.workspace()
    for table in ("statistics", "turn_results"):
        evaluated.record_file(table).unlink()
        assert (why_not_whole(workspace, PARTITION) or "").startswith("has no ")
    assert evaluated.cli("publish").code == 1
    assert evaluated.sql("SELECT * FROM turn_results UNION ALL BY NAME SELECT * FROM runs") == []


def test_a_file_that_was_lost_takes_nothing_out_of_the_store(published: Lab) -> None:
    before = published.store_contents()
    published.record_file("turn_results").unlink()
    said = published.cli("publish")
    assert said.code == 1
    assert "has no turn_results yet" in said.err
    assert published.store_contents() == before


def test_an_aggregate_that_came_later_is_not_missed(published: Lab) -> None:
    published.record_file("error_analysis").unlink()
    assert why_not_whole(published.workspace(), PARTITION) is None
    record_run(published.workspace(), PARTITION, "run", status="failed")
    assert why_not_whole(published.workspace(), PARTITION) == "has no error_analysis yet"


@pytest.mark.parametrize("known", [True, False])
def test_what_lacks_a_turn_is_not_published(lacking: Lab, known: bool) -> None:
    """Nor is history of a model version that is gone, of which nobody can tell what was planned."""
    if not known:
        lacking.versions({"name": "another", "provider": "puppet"})
    said = lacking.cli("publish", "--full")
    assert said.code == 1
    assert f"does not pass its checks{': of 3 planned turns 1 are missing' if known else ''}" in said.err
    assert lacking.sql("SELECT * FROM turn_results") == []


@pytest.mark.parametrize("gone", ["cases", "suite", "model version"])
def test_history_is_published_though_nobody_can_tell_what_was_planned(published: Lab, gone: str) -> None:
    """The suite has changed or is gone, or the model version is; what is there is judged by itself."""
    folder: Path = published.home.data / "suites" / "small"
    if gone == "cases":
        published.suite("small", [case("alpha", ("50", 50.0)), case("gamma", ("7", 7.0))])
        assert published.cli("validate").code == 0

        ran_of_suite(published.workspace(), "small", *INGESTING)
    elif gone == "suite":
        folder.rename(published.home.root / "away")
    else:
        published.versions({"name": "another", "provider": "puppet"})
    said = published.cli("publish", "--full")
    assert said.code == 0, said.err
    assert published.one("SELECT count(*) FROM turn_results") == 3


def test_a_partition_that_is_gone_for_good_is_taken_out(published: Lab) -> None:
    published.evaluate(day=DAY.replace(day=2), publish=True)
    for path in published.home.record.rglob(f"eval_date={DAY}/part.parquet"):
        path.unlink()
    assert published.cli("publish").code == 0
    assert [str(day) for (day,) in published.sql("SELECT DISTINCT eval_date FROM turn_results")] == ["2026-03-02"]


def test_every_published_evaluation_says_whether_it_is_simulated(published: Lab) -> None:
    published.versions({"name": "puppet", "provider": "puppet"}, {"name": "stand-in", "provider": "oracle"})
    published.evaluate(version="stand-in", publish=True)
    tables = [
        name
        for (name,) in published.sql(
            "SELECT table_name FROM duckdb_columns() WHERE column_name = 'eval_date' AND database_name = 'store' "
            "AND schema_name = 'main' AND table_name IN (SELECT table_name FROM duckdb_tables())"
        )
    ]
    assert {"runs", "statistics", "finqa_turns", "metrics", "evidence", "turn_errors"} <= set(tables)
    names = {"model_comparisons": "unnest([model_a, model_b])"}
    asked = [f"SELECT '{one}', {names.get(one, 'model_version')}, simulated FROM \"{one}\"" for one in tables]
    found = published.sql(" UNION ".join(asked))
    told = {("puppet", False), ("stand-in", True)}
    assert [row for row in found if row[1:] not in told] == []
    assert {row[1:] for row in found} == told
    latest = published.sql("SELECT model_version, bool_and(simulated) FROM latest_statistics GROUP BY ALL")
    assert set(latest) == told
