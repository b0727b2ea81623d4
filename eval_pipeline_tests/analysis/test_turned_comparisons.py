"""A comparison read from the other side is the one that would be made from there."""

import pytest

from eval_pipeline.analysis.comparisons.evaluations import evaluations_of, latest
from eval_pipeline.analysis.comparisons.pairs import comparison_rows
from eval_pipeline.analysis.comparisons.scored import TurnReader
from eval_pipeline.analysis.comparisons.turning import turned
from eval_pipeline_tests.analysis.histories import SILENT, answering, saying
from eval_pipeline_tests.support import Lab, number


@pytest.mark.parametrize("silent", [range(0), range(12, 18)])
def test_turned_is_what_is_made_the_other_way_round(forty: Lab, silent: range) -> None:
    wrong = dict.fromkeys(range(4, 12), number(-1)) | dict.fromkeys(silent, SILENT)
    answering(forty, "puppet", saying({1: number(7)}.get))
    answering(forty, "other", saying(wrong.get, 130))
    workspace = forty.workspace()
    found = evaluations_of(workspace, "small")
    a, b = latest(found["puppet"]), latest(found["other"])
    (there,), (back,) = (comparison_rows([pair], TurnReader(workspace)) for pair in ((a, b), (b, a)))
    assert there["broken"] != there["fixed"]
    assert there["tokens_difference"] != 0
    mine = turned(there)
    assert mine.keys() == back.keys()
    for name, value in back.items():
        exactly = value if not isinstance(value, float) else pytest.approx(value)
        assert mine[name] == exactly, name
    assert turned(mine) == there
