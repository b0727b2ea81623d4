"""Simulated model versions have known rates: what the pipeline finds is compared with what was drawn."""

import json
from collections import Counter
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline_tests.support import SHIPPED, Lab, built_once, surroundings

RATES = {
    "no_answer": 0.05,
    "execution_error": 0.10,
    "sign_error": 0.05,
    "scale_error": 0.08,
    "wrong_operations": 0.06,
    "wrong_operands": 0.08,
    "rounding": 0.04,
}
SLOPE, RECOVERY_RATE, CHANGE_RATE = 0.3, 0.6, 0.35
SEEDS, SAMPLES = (1, 2), 3
SUITE = "finqa_sample"


def entry(seed: int) -> dict[str, Any]:
    options = {"seed": seed, "rates": RATES, "slope": SLOPE}
    options |= {"recovery_rate": RECOVERY_RATE, "class_change_rate": CHANGE_RATE}
    return {"name": f"seed-{seed}", "provider": "simulated", "samples_per_turn": SAMPLES, "options": options}


def build(folder: Path) -> None:
    lab = Lab.at(folder)
    (lab.home.data / "suites").rmdir()
    (lab.home.data / "suites").symlink_to(SHIPPED / "suites")
    lab.versions(*[entry(seed) for seed in SEEDS])
    with surroundings(lab):
        for seed in SEEDS:
            lab.evaluate(SUITE, f"seed-{seed}")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab.at(built_once(tmp_path_factory, "simulated", build))


def first_attempts(lab: Lab) -> list[tuple[str, str, str]]:
    """(model version, turn, drawn mode) of every generation."""
    rows = lab.sql("SELECT model_version, turn_id, metadata FROM attempts WHERE number = 0")
    return [(version, turn, json.loads(metadata)["drawn_mode"]) for version, turn, metadata in rows]


def test_the_failure_modes_found_are_those_that_were_drawn(drawn: Lab) -> None:
    rows = drawn.sql(
        "SELECT t.model_version || ' ' || t.turn_id, t.failure_mode, "
        "  arg_max(a.metadata, a.number), list(a.response ORDER BY a.number) "
        "FROM finqa_turns AS t JOIN attempts AS a USING (model_version, turn_id, sample) "
        "GROUP BY t.model_version, t.turn_id, t.sample, t.failure_mode"
    )
    turns = sum(len(case.turns) for case in drawn.workspace().cases(SUITE))
    assert len(rows) == turns * SAMPLES * len(SEEDS)
    disagreeing = Counter()
    examples: dict[tuple[str, str], str] = {}
    for place, found, metadata, responses in rows:
        mode = json.loads(metadata)["drawn_mode"]
        if (found or "correct") != mode:
            cause = (mode, f"found {found}, after {len(responses)} attempts, first empty: {not responses[0]}")
            disagreeing[cause] += 1
            examples.setdefault(cause, place)
    listed = "\n".join(f"{count} × drawn {c[0]}: {c[1]}, e.g. {examples[c]}" for c, count in disagreeing.most_common())
    assert sum(disagreeing.values()) <= 0.05 * len(rows), f"{sum(disagreeing.values())} of {len(rows)}:\n{listed}"


def test_recovery_figures_are_those_of_the_attempts_that_were_drawn(drawn: Lab) -> None:
    rows = drawn.sql(
        "SELECT t.recovery_attempts_count, t.recovery_success, t.recovery_success_rate, "
        "  list(a.metadata ORDER BY a.number) "
        "FROM finqa_turns AS t JOIN attempts AS a USING (model_version, turn_id, sample) "
        "WHERE t.has_error GROUP BY t.model_version, t.turn_id, t.sample, 1, 2, 3"
    )
    second = recovered = tried = right_first = 0
    for count, success, rate, metadata in rows:
        modes = [json.loads(text)["drawn_mode"] for text in metadata]
        assert modes[0] in {"execution_error", "no_answer"}
        assert count == len(modes) - 1 >= 1
        assert success == (modes[-1] == "correct")
        assert rate == pytest.approx((modes[-1] == "correct") / count)
        assert "correct" not in modes[1:-1]
        tried += 1
        right_first += modes[1] == "correct"
        second += len(modes) == 3
        recovered += success
    assert second == tried - right_first
    for found, chance in ((right_first, RECOVERY_RATE), (recovered, 1 - (1 - RECOVERY_RATE) ** 2)):
        assert abs(found - tried * chance) < 4 * sqrt(tried * chance * (1 - chance)), (found, tried, chance)
    told = drawn.one("SELECT sum(turns) FROM error_analysis WHERE grouping = 'recovered' AND value = 'recovered'")
    assert told == recovered


def test_accuracy_is_what_was_drawn_right_before_and_after_recovery(drawn: Lab) -> None:
    """`rounding` counts as right; of what did not run, what was recovered is right too."""
    good = {"correct", "rounding"}
    first = Counter(version for version, _, mode in first_attempts(drawn) if mode in good)
    rows = drawn.sql(
        "SELECT model_version, metric, round(mean * n)::BIGINT FROM statistics "
        "WHERE metric IN ('correct', 'first_attempt_correct') AND split = 'all'"
    )
    found = {(version, metric): count for version, metric, count in rows}
    recovered = dict(drawn.sql("SELECT model_version, count(*) FROM finqa_turns WHERE recovery_success GROUP BY ALL"))
    for version in first:
        assert found[version, "first_attempt_correct"] == first[version]
        assert found[version, "correct"] == first[version] + recovered[version]
    assert drawn.sql("SELECT DISTINCT simulated FROM turn_results") == [(True,)]
