"""`suite report`: which turns tell model versions apart."""

import csv
from pathlib import Path

import pytest

from eval_pipeline.workspace.scope import Scope
from eval_pipeline_tests.support import Lab


@pytest.mark.always
def test_turns_are_told_by_what_model_versions_made_of_them(lab: Lab, tmp_path: Path) -> None:
    lab.suite()
    weak = [
        {"name": f"weak{n}", "provider": "simulated", "options": {"seed": n, "rates": {"wrong_operations": 0.5}}}
        for n in range(5)
    ]
    lab.versions({"name": "oracle", "provider": "oracle"}, {"name": "silent", "provider": "null"}, *weak)
    said = lab.cli("suite", "report", "--suite", "small")
    assert (said.code, "has no full evaluation yet" in said.err) == (2, True)
    for name in ("oracle", "silent", *(version["name"] for version in weak)):
        lab.evaluate(version=str(name))
    said = lab.cli("suite", "report", "--suite", "small", "--csv", str(tmp_path / "turns.csv"))
    assert said.code == 0, said.err
    # The oracle and the model that says nothing are right and wrong by construction: they do not count.
    assert said.out.startswith("small · 3 turns, 5 model versions\n")
    with (tmp_path / "turns.csv").open() as file:
        rows = list(csv.DictReader(file))
    wrong = dict(
        lab.sql("SELECT turn_id, avg((NOT correct)::INT) FROM turn_results WHERE model_version LIKE 'weak%' GROUP BY 1")
    )
    assert {row["turn_id"]: float(row["difficulty"]) for row in rows} == wrong
    assert {row["evaluations"] for row in rows} == {"5"}
    always_right = sum(share == 0 for share in wrong.values())
    assert f"  {always_right} were right in every evaluation\n" in said.out or not always_right


def test_a_part_of_a_suite_is_no_history(lab: Lab) -> None:
    lab.suite()
    lab.versions({"name": "some", "provider": "simulated", "options": {"rates": {}}})
    lab.evaluate(version="some", scope=Scope(1))
    said = lab.cli("suite", "report", "--suite", "small")
    assert (said.code, "has no full evaluation yet" in said.err) == (2, True)
