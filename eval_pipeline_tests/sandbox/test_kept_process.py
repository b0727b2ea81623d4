"""Trusted code runs in a process that is kept: new names, the limits of any snippet, and never with a model's."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.core.system.stopped import times_stopped
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed, SnippetRan
from eval_pipeline.sandbox.returned.results import as_pandas
from eval_pipeline_tests.sandbox.campaign import JAILS, tier_of
from eval_pipeline_tests.sandbox.conftest import Boxes

MARK = "pd.left = 1\nresult = 0"
IS_MARKED = "result = hasattr(pd, 'left')"
END = "import os; os._exit(0)"
SEARCH = """
first, second, found = b"reference-of", b"-the-suite", 0
areas = [line.split() for line in open("/proc/self/maps")]
with open("/proc/self/mem", "rb", 0) as memory:
    for area in areas:
        start, end = (int(place, 16) for place in area[0].split("-"))
        if area[1].startswith("rw") and end - start <= 1 << 28:
            memory.seek(start)
            data = memory.read(end - start)
            place = data.find(first)
            while place >= 0:
                found += data[place + len(first) : place + len(first) + len(second)] == second
                place = data.find(first, place + 1)
result = int(found)
"""
"""Counts in its own memory a text that is put together nowhere in it."""
FAILING = {
    "raises": "1 / 0",
    "no result": "other = 1",
    "too long": "while True: pass",
    "ends itself": END,
    "too much output": "print('x' * 2_000_000)",
    "too large a result": "result = 'x' * 2_000_000",
    "too much memory": "result = len(bytes(900 << 20))",
}


def values(boxes: Boxes, *codes: str, kept: bool = True, title: str = "", **more: Any) -> list[Any]:
    outcomes = boxes.run(*codes, title=title, leaves_nothing=kept, **more)
    assert all(isinstance(one, SnippetRan) for one in outcomes), outcomes
    return [as_pandas(one.result) for one in outcomes if isinstance(one, SnippetRan)]


@pytest.mark.always
@pytest.mark.parametrize("title", JAILS)
def test_only_trusted_code_finds_the_process_of_trusted_code(title: str, boxes: Boxes) -> None:
    assert values(boxes, MARK, IS_MARKED, title=title)[1] is tier_of(title).separate
    assert values(boxes, IS_MARKED, kept=False, title=title) == [False]
    boxes.run(END, title=title, leaves_nothing=True)
    assert values(boxes, IS_MARKED, title=title) == [False]


def test_names_random_numbers_and_tables_are_new_for_each_snippet(boxes: Boxes, tmp_path: Path) -> None:
    here, other = pd.DataFrame({"a": [1, 2]}), tmp_path / "other.csv"
    other.write_text("b\n5\n6\n")
    assert values(
        boxes, "df['b'] = 0; own = 1; result = 0", "result = ['own' in globals(), df.shape[1]]", tables={"t": here}
    ) == [0, [False, 1]]
    assert values(boxes, "result = ['t' in globals(), int(u.b.sum())]", tables={"u": other}) == [[False, 11]]
    assert values(boxes, "result = 'df' in globals()") == [False]
    first, second = values(boxes, *2 * ["import random; result = [random.random(), np.random.rand()]"])
    assert first == second
    assert [one.stdout for one in boxes.run("print(1); result = 1", "result = 2", leaves_nothing=True)] == ["1\n", ""]


def test_what_is_in_cells_is_new_for_each_snippet(boxes: Boxes) -> None:
    table = pd.DataFrame({"a": [np.array([3, 1]), np.array([2, 0])], "b": [[1], {2}]})
    change = "df.a.map(lambda cell: cell.partition(0)); df.b[0].append(5); df.b[1].add(6); df.attrs['x'] = 1"
    look = "result = [df.a[0].tolist(), df.a[1].tolist(), df.b[0], sorted(df.b[1]), len(df.attrs)]"
    assert values(boxes, f"{change}; {look}", look, tables={"t": table}) == [
        [[1, 3], [0, 2], [1, 5], [2, 6], 1],
        [[3, 1], [2, 0], [1], [2], 0],
    ]


class SlowToRead:
    """What takes a while to be read from where it was pickled."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __reduce__(self) -> tuple[Any, ...]:
        return time.sleep, (self._seconds,)


def test_the_time_of_a_snippet_counts_from_when_it_has_its_tables(boxes: Boxes) -> None:
    table, slow = pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})
    slow.attrs["slow"] = SlowToRead(1.5)
    assert values(boxes, MARK, tables={"t": table}) == [0]
    look = "result = [hasattr(pd, 'left'), int(df.a[0])]"
    assert values(boxes, look, tables={"t": slow}, wall_s=1.2) == [[True, 2]]


def test_no_process_is_kept_where_a_suite_has_packages_of_its_own(
    boxes: Boxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = boxes.of()
    assert values(boxes, MARK, IS_MARKED) == [0, True]
    monkeypatch.setattr(box, "_limits", replace(box._limits, packages="/nowhere"))
    assert values(boxes, IS_MARKED) == [False]


def test_trusted_code_fails_as_in_a_process_of_its_own_and_the_next_runs(boxes: Boxes) -> None:
    for name, code in FAILING.items():
        alone = boxes.run(code, wall_s=0.3)[0]
        before = times_stopped()
        kept = boxes.run(code, wall_s=0.3, leaves_nothing=True)[0]
        assert isinstance(alone, SnippetFailed), name
        assert isinstance(kept, SnippetFailed), name
        assert (kept.error_class, kept.message, kept.line) == (alone.error_class, alone.message, alone.line), name
        assert times_stopped() > before or kept.error_class not in (ErrorClass.TIMEOUT, ErrorClass.MEMORY), name
        assert values(boxes, "result = 42") == [42], name


def test_what_fails_beside_what_another_has_left_runs_again_alone(boxes: Boxes) -> None:
    boxes.run(END, leaves_nothing=True)
    assert values(boxes, MARK, "result = 1 // (not hasattr(pd, 'left'))", IS_MARKED) == [0, 1, True]


def test_what_trusted_code_was_is_nowhere_in_the_memory_of_a_snippet(boxes: Boxes) -> None:
    boxes.run(END, leaves_nothing=True)
    code = "text = 'reference-of-the-suite'\nresult = text * 3"
    assert values(boxes, code, f"{code}\n{SEARCH}")[1] > 0
    assert values(boxes, SEARCH, kept=False) == [0]


def test_a_process_that_has_grown_makes_room_for_the_next(boxes: Boxes) -> None:
    boxes.run(END, leaves_nothing=True)
    assert values(boxes, f"pd.large = bytearray(20 << 20)\n{MARK}", IS_MARKED) == [0, True]
    assert values(boxes, f"pd.large = bytes(range(256)) * (400 << 10)\n{MARK}", IS_MARKED) == [0, False]
