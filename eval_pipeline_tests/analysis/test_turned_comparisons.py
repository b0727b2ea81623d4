"""A comparison read from the other side is the one that would be made from there."""

from collections.abc import Callable

import pytest

from eval_pipeline.analysis.comparisons.evaluations import evaluations_of, latest
from eval_pipeline.analysis.comparisons.pairs import comparison_rows
from eval_pipeline.analysis.comparisons.scored import TurnReader
from eval_pipeline.analysis.comparisons.turning import turned
from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.providers.base import Call, CallError
from eval_pipeline_tests.support import Answer, Lab, Puppet, number, response

SILENT = CallError(CallErrorKind.TIMEOUT, "nobody answered")


def answering(lab: Lab, version: str, said: Callable[[int], Answer | None], tokens: int) -> None:
    def answer(call: Call) -> Answer:
        found = said(int(call.case_id[1:]))
        return response(call.gold.oracle(), tokens) if found is None else found

    Puppet.answer = staticmethod(answer)
    lab.evaluate(version=version, epoch=version, run_id=version)


@pytest.mark.parametrize("silent", [range(0), range(12, 18)])
def test_turned_is_what_is_made_the_other_way_round(forty: Lab, silent: range) -> None:
    wrong = dict.fromkeys(range(4, 12), number(-1)) | dict.fromkeys(silent, SILENT)
    answering(forty, "puppet", {1: number(7)}.get, 100)
    answering(forty, "other", wrong.get, 130)
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
