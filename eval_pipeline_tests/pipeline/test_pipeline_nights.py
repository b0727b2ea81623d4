"""One history of ten nights through the whole pipeline: a loss on night 5 is told that night, and on no other."""

from datetime import date, timedelta

import numpy as np
import pytest

from eval_pipeline.analysis.comparisons.compared import LOSS
from eval_pipeline.providers.base import Call
from eval_pipeline_tests.support import Lab, Puppet, case, number

NIGHTS, CASES, TURNS_A_CASE = 10, 500, 4
DROPS_ON, ACCURACY, KEPT = 5, 0.8, 1 - 0.06 / 0.8
"""Six points of 80 are lost from night 5 on."""
CORRELATION = 0.3
FIRST = date(2026, 3, 1)


@pytest.mark.soak
def test_a_loss_of_six_points_on_night_5_fails_the_run_of_that_night_only(lab: Lab, puppet: type[Puppet]) -> None:
    rng = np.random.default_rng(9)
    strength = 1 / CORRELATION - 1
    chances = rng.beta(ACCURACY * strength, (1 - ACCURACY) * strength, CASES)
    lab.suite(cases=[case(f"c{i:03}", *[(str(50 + k), 50.0 + k) for k in range(TURNS_A_CASE)]) for i in range(CASES)])
    lab.versions({"name": "puppet", "provider": "puppet"})
    codes = []
    for night in range(1, NIGHTS + 1):
        kept = KEPT if night >= DROPS_ON else 1.0
        right = rng.random((CASES, TURNS_A_CASE)) < chances[:, None] * kept

        def answer(call: Call, right: np.ndarray = right) -> str:
            return call.gold.oracle() if right[int(call.case_id[1:]), call.turn_index] else number(-1)

        puppet.answer = staticmethod(answer)
        day = FIRST + timedelta(days=night - 1)
        said = lab.cli("run", "--no-report", "--fresh", "--eval-date", day.isoformat())
        codes.append(said.code)
        assert said.code == 0 or "puppet: -" in said.err, said.text
    nights = lab.sql("SELECT n, verdict, round(accuracy, 3) FROM trends ORDER BY eval_date")
    print("\nnight: turns, verdict, accuracy", *enumerate(nights, 1), sep="\n")
    assert [night for night, code in enumerate(codes, 1) if code] == [DROPS_ON]
    assert [night for night, (_, verdict, _) in enumerate(nights, 1) if verdict == LOSS] == [DROPS_ON]
    assert all(turns == CASES * TURNS_A_CASE for turns, _, _ in nights)
