"""Imports of whole data sets in each published form: what is left out by name and cause, and an end before the end."""

import json
from pathlib import Path

import psutil
import pytest

from eval_pipeline.core.errors import EndedEarlyError
from eval_pipeline.core.reading import arms_length
from eval_pipeline.core.reading.arms_length import at_arms_length
from eval_pipeline.operations.imports import importing
from eval_pipeline.operations.imports.importing import import_at_arms_length, import_suite
from eval_pipeline.suites.cases import read_suite
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.tracks.pandas_code.foreign_problems import BAD, COUNT, FORMS, written
from eval_pipeline_tests.tracks.pandas_code.helpers import needs_sandbox

IN_AN_INTERPRETER = arms_length._run


@needs_sandbox
@pytest.mark.parametrize("form", FORMS)
def test_of_sixty_problems_only_those_are_left_out_whose_gold_does_not_hold(
    form: str, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[int, int]] = []
    monkeypatch.setattr("eval_pipeline.operations.imports.import_golds.tell_progress", lambda *told: heard.append(told))
    source = written(tmp_path, form)
    total = len(source.read_text().splitlines())
    assert total >= COUNT
    made = import_suite(lab.workspace(), form, source, form)
    left_out = [(int(why.split(":")[0].split("#")[0].rpartition("_")[2]), why) for why in made.wrong_gold]
    assert made.cases + len(left_out) == total and {number % 100 for number, _ in left_out} == set(BAD)
    assert all(BAD[number % 100][1] in why for number, why in left_out)
    told = read_suite(lab.workspace().suite(form))
    assert len(told.cases) == made.cases and len(told.left_out) == len(left_out)
    unread = sum(1 for number, _ in left_out if number % 100 == 5)
    assert heard[0] == (0, total - unread) and heard[-1] == (total - unread, total - unread)


TASK = {"prompt": "def f(x):\n", "entry_point": "f", "test": "def check(f):\n    assert f(1) == 1\n"}
QUICK = TASK | {"task_id": "PandasEval/1", "canonical_solution": ["    return x"]}
ENDLESS = [
    TASK | {"task_id": f"PandasEval/{n}", "canonical_solution": ["    import time\n    time.sleep(600)"]}
    for n in range(2, 9)
]


@needs_sandbox
def test_an_import_that_is_ended_is_a_suite_of_what_was_checked_and_leaves_nothing(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arms_length, "_run", IN_AN_INTERPRETER)
    monkeypatch.setattr(importing, "at_arms_length", at_arms_length)
    monkeypatch.setenv("EVAL_HOME", str(lab.home.root))
    source = tmp_path / "tasks.jsonl"
    source.write_text("\n".join(json.dumps(task) for task in [QUICK, *ENDLESS]))

    def interrupt(done: int, _: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    before = {child.pid for child in psutil.Process().children(recursive=True)}
    made = import_at_arms_length("pandaseval", source, "ended", None, (), heard=interrupt)
    assert (made.cases, made.not_checked, made.wrong_gold) == (1, 7, ())
    assert [case.id for case in read_suite(lab.workspace().suite("ended")).cases] == ["pandaseval_1"]
    with pytest.raises(EndedEarlyError, match="when 1 of 8 golds were checked; nothing was imported"):
        import_at_arms_length("pandaseval", source, "ended", None, (), heard=interrupt)
    assert [path.name for path in lab.home.imported_suites.iterdir()] == ["ended"]
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before
