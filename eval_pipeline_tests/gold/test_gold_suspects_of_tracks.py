"""The same wrong answer of two models puts the turn on the list; overrides change its verdict."""

from typing import Any

import pytest
import yaml

from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Case
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline_tests.chains import ran_of_suite
from eval_pipeline_tests.gold_home import WHO
from eval_pipeline_tests.support import SHIPPED, Lab, Puppet

SUITES = ("finqa_sample", "pandas_sample")
"""Of a track whose answers are read, and of one whose answers are executed; `test_gold_of_tracks.py` has the others."""
CASES = 3


def chosen(name: str) -> tuple[Any, list[Case], dict[str, Any]]:
    """The track, a few cases about the same thing with gold answers that differ, and their contents."""
    source = read_header(SHIPPED / "suites" / name)
    track, found = source.track(), read_suite(source)
    contents = dict(zip([case.id for case in found.cases], found.contents, strict=True))
    usable = [case for case in found.cases if not track.gold_is_empty(case.turns[0])]
    same = (
        usable if name == "finqa_sample" else [c for c in usable if track.prefix_key(c) == track.prefix_key(usable[0])]
    )
    first = {track.expected_text(case.turns[0]): case.id for case in reversed(same)}
    varied = sorted(same, key=lambda case: case.id not in first.values())
    return track, varied[:CASES], contents


def gold_of(track: Any, case: Case, content: str) -> dict[str, Any]:
    """The gold of the first turn as its file has it; what the other turn has and this one lacks is left out."""
    place: Any = parse_json(content)
    for part in track.gold_place(0):
        place = place[part] if isinstance(part, int) or part in place else {0: place}
    return {name: place.get(name) for name in track.gold_fields}


@pytest.mark.parametrize("name", SUITES)
def test_the_same_wrong_answer_is_listed_and_an_override_makes_it_right(
    lab: Lab, puppet: type[Puppet], name: str
) -> None:
    track, cases, contents = chosen(name)
    wrong, other = cases[0], next(case for case in cases[1:] if _differs(track, case, cases[0]))
    folder = lab.shipped(name, [parse_json(contents[case.id]) for case in cases])
    versions = ("one", "two")
    lab.versions(*({"name": found, "provider": "puppet", "model": found} for found in versions))
    target = wrong.turns[0].id
    said = track.oracle(other.turns[0])
    puppet.answer = staticmethod(lambda call: said if call.turn_id == target else call.gold.oracle())
    scope = Scope(cases=tuple(case.id for case in cases))
    for found in versions:
        lab.evaluate(name, found, scope=scope)
    ran_of_suite(lab.workspace(), name, "gold_suspects")
    rows = lab.sql("SELECT turn_id, reason, model_versions, answered FROM gold_suspects")
    assert rows == [(target, "agreement", 2, 2)]
    gold = gold_of(track, other, contents[other.id])
    (folder / "gold_overrides.yaml").write_text(
        yaml.safe_dump([WHO | {"turn": target, "action": "corrected", "gold": gold}])
    )
    puppet.asked.clear()
    for found in versions:
        lab.evaluate(name, found, scope=scope)
    assert not puppet.asked
    query = (
        "SELECT edition, mean FROM gold_editions WHERE metric = 'correct' AND model_version = 'one' ORDER BY edition"
    )
    (_, published), (_, scored) = lab.sql(query)
    assert published < scored == 1.0
    ran_of_suite(lab.workspace(), name, "gold_suspects")
    assert lab.sql("SELECT * FROM gold_suspects WHERE reason = 'agreement'") == []


def _differs(track: Any, case: Case, other: Case) -> bool:
    return bool(track.expected_text(case.turns[0]) != track.expected_text(other.turns[0]))
