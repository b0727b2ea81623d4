"""Home: every suite with its model versions, newest first, with the figures of the store."""

from starlette.testclient import TestClient

from eval_pipeline.view.published import Look
from eval_pipeline_tests.view.homes import FALLING, HOSTILE, STEADY
from eval_pipeline_tests.view.pages import Parts, is_harmless


def test_model_versions_come_newest_first(client: TestClient) -> None:
    rows = Parts(client.get("/").text).rows()
    assert [row.partition("?")[2] for row in rows] == [
        f"model_version={FALLING}&eval_date=2026-03-02",
        f"model_version={HOSTILE}&eval_date=2026-03-02",
        f"model_version={STEADY}&eval_date=2026-03-01",
    ]


def test_figures_are_those_of_the_leaderboard(client: TestClient, look: Look) -> None:
    html = client.get("/").text
    is_harmless(html)
    text = Parts(html).text
    for row in look.rows("SELECT * FROM leaderboard('harbour')"):
        interval = f"{row['low']:.1%} to {row['high']:.1%}"
        assert f"{row['accuracy']:.1%} {interval}" in text
    assert "31 31 31 31 – 3,410" in text


def test_a_loss_is_open_and_the_series_is_told_in_words(client: TestClient) -> None:
    html = client.get("/").text
    assert "−38.7 points since 2026-03-02" in Parts(html).text
    labels = [a["aria-label"] for tag, a in Parts(html).elements if tag == "svg"]
    assert labels == ["accuracy on 2 dates from 2026-03-01 to 2026-03-02: 100%, 61%"]


def test_each_row_leads_to_its_turns(client: TestClient) -> None:
    for address in Parts(client.get("/").text).rows():
        assert client.get(address).status_code == 200
