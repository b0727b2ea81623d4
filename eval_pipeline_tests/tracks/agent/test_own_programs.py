"""What a program has answered, by what it wrote and how it ended."""

from typing import Any

import pytest

from eval_pipeline.core.system.programs import ProgramEnded
from eval_pipeline_plugins.tracks.agent.running.solving import finished


@pytest.mark.parametrize(
    ("written", "output", "status", "answer"),
    [
        ('{"answer": [1, 2]}', "", 0, [1, 2]),
        ("[1, 2]\n", "noise", 0, [1, 2]),
        ('{"a": 1}', "", 0, {"a": 1}),
        ("twelve\n", "", 3, "twelve"),
        ("1e999", "", 0, "1e999"),
        ("[" * 9999, "", 0, "[" * 9999),
        (None, 'log\n{"answer": 12, "why": "so"}\n\n', 0, 12),
        (None, "log\n12\n  \n", 0, "12"),
        (None, '{"a": 1}', 0, '{"a": 1}'),
        (" \n", "last", 0, "last"),
    ],
)
def test_an_answer_is_read(written: str | None, output: str, status: int, answer: Any) -> None:
    found = finished(ProgramEnded(status, None, output, "noise", written), 5.0)
    assert found.answer is not None and found.answer.arguments == {"answer": answer}


@pytest.mark.parametrize(
    ("ended", "how", "why"),
    [
        (ProgramEnded(3, None, "12", "a\nb\n", None), "crashed", "status 3 and without an answer: a: a b"),
        (
            ProgramEnded(1, None, "", "Traceback\n  x\nmy.KeyError: 'b'\n", None),
            "crashed",
            "answer: my.KeyError: 'b': Tr",
        ),
        (ProgramEnded(1, None, "", "\na.js:1\n\nError: no c\n    at d", None), "crashed", "answer: Error: no c: a.js"),
        (
            ProgramEnded(2, None, "", "python: no such file\n", None),
            "crashed",
            "without an answer: python: no such file",
        ),
        (ProgramEnded(-11, None, "12", "", None), "crashed", "status -11"),
        (ProgramEnded(0, None, " \n", "", None), "gave_up", "it ended with status 0 and without an answer"),
        (ProgramEnded(-9, "wall", "12", "", "12"), "seconds", "more than the 5 s that are allowed"),
        (ProgramEnded(-9, "memory", "12", "", "12"), "crashed", "more memory"),
        (ProgramEnded(-9, "threads", "12", "", "12"), "crashed", "more processes"),
    ],
)
def test_who_gives_no_answer_has_ended_somehow(ended: ProgramEnded, how: str, why: str) -> None:
    found = finished(ended, 5.0)
    assert (found.answer, found.ended) == (None, how) and why in found.why
