"""References to evaluations: what they mean, which evaluation they choose, and names that tell evaluations apart."""

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.analysis.comparisons.references import Reference, chosen, names_of, parse_reference
from eval_pipeline.core.errors import UsageError
from eval_pipeline_tests.analysis.held import side
from eval_pipeline_tests.support import DAY

KNOWN = {"fake-1", "fake-1+terse", "claude@2025", "deadbeef00", "odd.json"}


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
    assert parse_reference(text, KNOWN) == Reference(text, model_version, **further)


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
        parse_reference(text, KNOWN)
    assert expected in str(refused.value)


NOON = datetime(2026, 3, 4, 12).astimezone()
LATER = DAY + timedelta(days=1)
SIDES = {
    "old": side("a", begun_at=NOON),
    "first": side("a", day=LATER, begun_at=NOON + timedelta(hours=1), id="1" * 10, is_newest=False),
    "put back": side("a", day=LATER, begun_at=NOON + timedelta(hours=2), id="2" * 10),
    "third": side("a", day=LATER, begun_at=NOON + timedelta(hours=3), id="3" * 10, is_newest=False),
    "part": side("a", day=LATER + timedelta(days=1), scope="cases=c00"),
    "part of b": side("b", scope="cases=c00"),
    "newer part of b": side("b", day=LATER, scope="cases=c00"),
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
    found = chosen(parse_reference(text, {"a", "b"}), list(SIDES.values()))
    assert found is (None if expected is None else SIDES[expected])


def test_there_is_nothing_before_a_single_evaluation() -> None:
    assert chosen(parse_reference("a@before", {"a"}), [SIDES["old"]]) is None


def here(hours: int = 0, **more: Any) -> Any:
    return side("a", held=False, begun_at=NOON + timedelta(hours=hours), **more)


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        ([here(), side("b", held=False)], ["a", "b"]),
        ([here(), here(day=LATER), side("b", held=False)], [f"a ({DAY})", f"a ({LATER})", "b"]),
        (
            [here(day=LATER), here(1, id="1" * 10), here(2, id="2" * 10)],
            [f"a ({LATER})", f"a ({DAY} 13:00)", f"a ({DAY} 14:00)"],
        ),
        ([here(id="1" * 10), here(id="2" * 10)], [f"a ({DAY} 12:00 1111111111)", f"a ({DAY} 12:00 2222222222)"]),
        ([side("a", file="main.json"), here()], ["a (main.json)", f"a ({DAY})"]),
        ([side("a", file="main.json"), side("b", held=False)], ["a (main.json)", "b"]),
    ],
)
def test_names_tell_evaluations_apart_and_say_no_more_than_that(sides: list[Any], expected: list[str]) -> None:
    assert names_of(sides) == expected
