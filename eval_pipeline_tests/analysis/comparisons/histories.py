"""Evaluations of forty turns on several nights, with turns wrong as the test wants it."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.providers.base import Call, CallError
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline_tests.chains import compared
from eval_pipeline_tests.support import DAY, Answer, Lab, Puppet, case, number, response

CASES = [case(f"c{index:02d}", ("50", 50.0), ("add(50, 7)", 57.0)) for index in range(20)]
"""Forty turns in twenty conversations."""
Said = Answer | CallError
LAST = "cost_per_correct_answer"
"""The last stage of which comparisons read something."""
SILENT = CallError(CallErrorKind.TIMEOUT, "nobody answered")


def wrong_in(*cases: int) -> Callable[[Call], Answer]:
    """Gold answers but in these cases, whose turns all come out wrong."""
    names = {f"c{index:02d}" for index in cases}
    return lambda call: number(-1) if call.case_id in names else call.gold.oracle()


def night(count: int) -> date:
    return DAY + timedelta(days=count)


def evaluated(lab: Lab, count: int, wrong: Sequence[int] = (), version: str = "puppet", **more: Any) -> None:
    Puppet.answer = staticmethod(wrong_in(*wrong))
    name = f"{version} {count}"
    lab.evaluate(version=version, day=night(count), epoch=name, run_id=name, **{"upto": LAST} | more)


def saying(said: Callable[[int], Said | None], tokens: int = 100) -> Callable[[Call], Said]:
    """Answers with what is said in each conversation by its number; None is the right answer."""

    def answer(call: Call) -> Said:
        found = said(int(call.case_id[1:]))
        return response(call.gold.oracle(), tokens) if found is None else found

    return answer


def answering(lab: Lab, version: str, answer: Callable[[Call], Said], **more: Any) -> None:
    Puppet.answer = staticmethod(answer)
    lab.evaluate(version=version, epoch=version, run_id=version, **{"upto": LAST} | more)


def rows(lab: Lab, table: Table) -> list[dict[str, Any]]:
    compared(lab.workspace(), "small")
    return lab.workspace().record.read(table, RecordKey.of_suite("small")).to_pylist()
