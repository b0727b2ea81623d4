"""References to evaluations: what they mean, which evaluation they choose, and names that tell evaluations apart."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.analysis.comparisons.chosen.references import (
    KnownEvaluation,
    ReadReference,
    chosen,
    names_of,
    parse_reference,
)
from eval_pipeline.core.errors import UsageError
from eval_pipeline_tests.support import DAY

NAMES = {"fake-1", "fake-1+terse", "claude@2025", "deadbeef00", "odd.json"}


@pytest.mark.parametrize(
    ("text", "model_version", "further"),
    [
        ("fake-1", "fake-1", {}),
        ("fake-1@latest", "fake-1", {}),
        ("fake-1@before", "fake-1", {"when": "before"}),
        ("fake-1@2026-11-27", "fake-1", {"when": date(2026, 11, 27)}),
        ("fake-1+terse@before", "fake-1+terse", {"when": "before"}),
        ("claude@2025", "claude@2025", {}),
        ("claude@2025@before", "claude@2025", {"when": "before"}),
        ("deadbeef00", "deadbeef00", {}),
        ("odd.json", "odd.json", {}),
        ("0123456789", "", {"id": "0123456789"}),
        ("ci/main.json", "", {"file": Path("ci/main.json")}),
        ("a@b.json", "", {"file": Path("a@b.json")}),
    ],
)
def test_references_are_read_and_names_of_model_versions_win(
    text: str, model_version: str, further: dict[str, Any]
) -> None:
    assert parse_reference(text, NAMES) == ReadReference(text, model_version, **further)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nobody", "unknown model version 'nobody'; known: claude@2025, "),
        ("nobody@before", "unknown model version 'nobody'"),
        ("fake-1@yesterday", "after @ comes a date (YYYY-MM-DD), 'latest' or 'before', and not 'yesterday'"),
        ("fake-1@", "after @ comes a date"),
        ("fake-1@2026-13-01", "after @ comes a date"),
        ("012345678", "unknown model version '012345678'"),
        ("0123456789A", "unknown model version"),
    ],
)
def test_what_is_no_reference_is_told(text: str, expected: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_reference(text, NAMES)
    assert expected in str(refused.value)


NOON = datetime(2026, 3, 4, 12).astimezone()  # names have local time
HOUR, LATER = timedelta(hours=1), DAY + timedelta(days=1)
KNOWN_OF_A_AND_B = {
    "old": KnownEvaluation("a", DAY, begun_at=NOON),
    "first": KnownEvaluation("a", LATER, begun_at=NOON + HOUR, id="1" * 10, is_newest=False),
    "put back": KnownEvaluation("a", LATER, begun_at=NOON + 2 * HOUR, id="2" * 10),
    "third": KnownEvaluation("a", LATER, begun_at=NOON + 3 * HOUR, id="3" * 10, is_newest=False),
    "part": KnownEvaluation("a", LATER + timedelta(days=1), is_full=False),
    "part of b": KnownEvaluation("b", DAY, is_full=False),
    "newer part of b": KnownEvaluation("b", LATER, is_full=False),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "put back"),  # a full one before parts that are newer; on its date the one in place, whenever begun
        ("a@before", "third"),
        (f"a@{DAY}", "old"),
        (f"a@{LATER}", "put back"),
        (f"a@{LATER + timedelta(days=1)}", "part"),
        ("1" * 10, "first"),
        ("b", "newer part of b"),
        ("b@before", "part of b"),
        ("4" * 10, None),
        (f"b@{DAY - timedelta(days=1)}", None),
    ],
)
def test_a_reference_chooses_one_evaluation(text: str, expected: str | None) -> None:
    found = chosen(parse_reference(text, {"a", "b"}), list(KNOWN_OF_A_AND_B.values()))
    assert found is (None if expected is None else KNOWN_OF_A_AND_B[expected])


def test_there_is_nothing_before_a_single_evaluation() -> None:
    assert chosen(parse_reference("a@before", {"a"}), [KNOWN_OF_A_AND_B["old"]]) is None


def a(hours: int = 0, day: date = DAY, **more: Any) -> KnownEvaluation:
    return KnownEvaluation("a", day, begun_at=(NOON + hours * HOUR).astimezone(UTC), **more)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ([a(), KnownEvaluation("b", DAY)], ["a", "b"]),
        ([a(), a(day=LATER), KnownEvaluation("b", DAY)], [f"a ({DAY})", f"a ({LATER})", "b"]),
        (
            [a(day=LATER), a(1, id="1" * 10), a(2, id="2" * 10)],
            [f"a ({LATER})", f"a ({DAY} 13:00)", f"a ({DAY} 14:00)"],
        ),
        ([a(id="1" * 10), a(id="2" * 10)], [f"a ({DAY} 12:00 1111111111)", f"a ({DAY} 12:00 2222222222)"]),
        ([a(is_newest=False, id="1" * 10), KnownEvaluation("b", DAY)], [f"a ({DAY} 12:00)", "b"]),
        ([a(is_newest=False, id="1" * 10), a(day=LATER)], [f"a ({DAY} 12:00)", f"a ({LATER})"]),
        ([a(file="main.json"), a()], ["a (main.json)", f"a ({DAY})"]),
        ([a(file="main.json"), KnownEvaluation("b", DAY)], ["a (main.json)", "b"]),
    ],
)
def test_names_tell_evaluations_apart_and_say_no_more_than_that(
    known: list[KnownEvaluation], expected: list[str]
) -> None:
    assert names_of(known) == expected
