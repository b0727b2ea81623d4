"""The matrix of a suite: figures of the store, prompts across, and links to turns and to pairs side by side."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from eval_pipeline.core import shown
from eval_pipeline.core.home import Home
from eval_pipeline.view.published import StoreView
from eval_pipeline_tests.view.homes import FALLING, HOSTILE, STEADY, SUITE
from eval_pipeline_tests.view.pages import Parts, changed, is_harmless

MATRIX = f"/suites/{SUITE}/matrix"


def test_the_matrix_has_the_figures_of_the_store_and_leads_to_turns_and_pairs(
    client: TestClient, look: StoreView
) -> None:
    html = client.get(MATRIX).text
    is_harmless(html)
    found = Parts(html)
    for row in look.rows("SELECT * FROM leaderboard_details('harbour')"):
        ends = row["low"], row["high"]
        one_right = row["tokens"] / round(row["accuracy"] * row["scored"])
        figures = f"{shown.rate(row['accuracy'], *ends)} {shown.interval(*ends)} {shown.tokens(one_right)} tokens"
        assert figures in found.text
    pairs = look.rows("SELECT * FROM model_comparisons WHERE verdict <> 'not_significant'")
    assert f"{len(pairs)} of 3 tested pairs differ" in found.text
    compared = found.links("/compare?")
    assert len(compared) == 2 + len(pairs)
    for address in [*found.rows(), *compared]:
        assert client.get(address).status_code == 200
    assert MATRIX in Parts(client.get("/").text).links()


@pytest.mark.parametrize("prompt", ["terse", '<b>"\u202e'])
def test_prompts_are_columns(home: Home, tmp_path: Path, prompt: str) -> None:
    name = f"{STEADY}+{prompt}".replace("'", "''")
    statements = [
        f"UPDATE {table} SET {column} = '{name}' WHERE {column} = '{FALLING}'"
        for table, column in (
            *((table, "model_version") for table in ("turn_results", "statistics", "coverage", "model_versions")),
            ("model_comparisons", "model_a"),
            ("model_comparisons", "model_b"),
        )
    ]
    settings = f"json_merge_patch(settings, json_object('suite_prompt', '{prompt}'))"
    statements.append(f"UPDATE model_versions SET settings = {settings} WHERE model_version = '{name}'")
    with changed(home, tmp_path, *statements) as reader:
        html = reader.get(MATRIX).text
    is_harmless(html)
    heads = [text.strip() for text in Parts(html).texts if text.strip()]
    start = heads.index("Model version")
    assert heads[start + 1] == "suite's own"
    assert [name in Parts(html).text for name in (HOSTILE[:3], STEADY)] == [True, True]


def test_a_suite_that_nobody_evaluated_has_none(client: TestClient) -> None:
    assert client.get("/suites/nowhere/matrix").status_code == 404
