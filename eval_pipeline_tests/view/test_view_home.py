"""Home: every suite with its model versions, newest first, with the figures of the store."""

from datetime import date
from pathlib import Path

from starlette.testclient import TestClient

from eval_pipeline.core.home import Home
from eval_pipeline.operations.runs.evaluations import evaluation_of
from eval_pipeline.reports.contents.facts import warnings
from eval_pipeline.view.published import Look
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.view.homes import FALLING, HOSTILE, STEADY, SUITE
from eval_pipeline_tests.view.pages import Parts, changed, is_harmless, turns_of


def test_model_versions_come_newest_first_with_the_figures_of_the_leaderboard_and_lead_to_turns(
    client: TestClient, look: Look
) -> None:
    html = client.get("/").text
    rows = Parts(html).rows()
    assert [row.partition("?")[2] for row in rows] == [
        f"model_version={FALLING}&eval_date=2026-03-02",
        f"model_version={HOSTILE}&eval_date=2026-03-02",
        f"model_version={STEADY}&eval_date=2026-03-01",
    ]
    is_harmless(html)
    text = Parts(html).text
    for row in look.rows("SELECT * FROM leaderboard('harbour')"):
        interval = f"{row['low']:.1%} to {row['high']:.1%}"
        assert f"{row['accuracy']:.1%} {interval}" in text
    cases = {row["cases"] for row in look.rows("SELECT cases FROM leaderboard_details('harbour')")}
    assert any(f"31 31 31 31 {count} of {count} – 3,410" in text for count in cases)
    assert "−38.7 points since 2026-03-02" in Parts(html).text
    labels = [a["aria-label"] for tag, a in Parts(html).elements if tag == "svg"]
    assert labels == ["accuracy on 2 dates from 2026-03-01 to 2026-03-02: 100%, 61%"]
    for address in rows:
        assert client.get(address).status_code == 200


def test_what_looks_like_the_configuration_is_told_wherever_its_figures_are(client: TestClient, home: Home) -> None:
    """The same wrong number on all that it had right the night before; every other evaluation has no such sign."""
    sentence = "12 of 12 wrong answers are one number: is that what is answered where something fails?"
    text = Parts(client.get("/").text).text
    assert text.count("configuration?") == 1
    pages = {
        day: Parts(client.get(turns_of(FALLING, day)).text).text.count(sentence) for day in ("2026-03-01", "2026-03-02")
    }
    assert pages == {"2026-03-01": 0, "2026-03-02": 1}
    both = f"/suites/{SUITE}/compare?versions={FALLING},{FALLING}&eval_dates=2026-03-01,2026-03-02"
    assert Parts(client.get(both).text).text.count(sentence) == 1
    for day, count in pages.items():
        evaluation = evaluation_of(Workspace(home), SUITE, FALLING, date.fromisoformat(day))
        assert len([found for found in warnings(evaluation) if sentence in found]) == count, "page and workbook"


def told(home: Home, folder: Path, *statements: str) -> str:
    """The first page, and with `?retired=1`, of a store that these statements have changed."""
    with changed(home, folder, *statements) as reader:
        return "|".join(Parts(reader.get(address).text).text for address in ("/", "/?retired=1"))


def test_a_loss_that_somebody_has_looked_at_is_told_with_the_reason(home: Home, tmp_path: Path) -> None:
    losses = (
        ("2026-03-02", "A", "too early", "2026-03-03"),
        ("2026-03-02", "B", "it is known", "2026-03-04"),
        ("2026-01-01", "C", "another", "2026-03-05"),
    )
    inserted = [
        f"""INSERT INTO acknowledgements BY NAME SELECT 'harbour' AS suite, 'falling' AS model_version,
        DATE '{day}' AS open_loss_date, '{who}' AS who, '{why}' AS why, TIMESTAMP '{at}' AS acknowledged_at"""
        for day, who, why, at in losses
    ]
    text = told(home, tmp_path, *inserted)
    assert "since 2026-03-02 acknowledged by B: it is known" in text
    assert "another" not in text
    assert "too early" not in text


def test_suites_come_by_their_last_evaluation_and_retired_model_versions_are_a_link_away(
    home: Home, tmp_path: Path
) -> None:
    text = told(home, tmp_path, "UPDATE model_versions SET retired = true WHERE model_version = 'steady'")
    first, with_retired = text.split("|")
    assert ("steady" in first, "1 retired, show them" in first) == (False, True)
    assert "steady retired" in with_retired
    statements = []
    for name, day in (("aaa", "2026-02-01"), ("zebra", "2026-03-05")):
        other = f"SELECT * REPLACE ('{name}' AS suite"
        statements += [
            f"INSERT INTO suites {other}) FROM suites WHERE suite = 'harbour'",
            f"INSERT INTO turn_results {other}, DATE '{day}' AS eval_date) FROM turn_results "
            "WHERE model_version = 'steady'",
        ]
    with changed(home, tmp_path, *statements) as reader:
        found = Parts(reader.get("/").text).elements
    names = [attributes["id"] for tag, attributes in found if tag == "h2"]
    assert names == ["suite-zebra", "suite-harbour", "suite-aaa"]
