"""Links to the workbench: the same path everywhere, a whole address only where somebody has said which."""

from datetime import date

import pytest

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.links import VIEW_URL, compare_path, evaluation_path, linked, suite_path, view_url

A, B = Partition("s", "a@1", date(2026, 3, 1)), Partition("s", "b+c", date(2026, 3, 2))


def test_a_path_is_always_the_same() -> None:
    assert compare_path([A, B], {"group": "rw", "q": ""}) == (
        "/suites/s/compare?versions=a%401,b%2Bc&eval_dates=2026-03-01,2026-03-02&group=rw"
    )
    assert evaluation_path(B) == "/suites/s/turns?model_version=b%2Bc&eval_date=2026-03-02"


@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("", ""),
        ("https://evals.example.org/", "https://evals.example.org"),
        (" http://here:3100 ", "http://here:3100"),
        ("javascript:alert(1)", ""),
        ("evals.example.org", ""),
    ],
)
def test_an_address_is_whole_where_somebody_said_which(
    said: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VIEW_URL, said)
    assert view_url() == address
    assert linked(suite_path("s")) == f"{address}/suites/s/compare"
