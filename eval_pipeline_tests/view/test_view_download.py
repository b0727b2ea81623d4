"""What is downloaded: the turns of the filter, no formula in CSV, everything as it is in Parquet."""

import csv
import io

import pyarrow.parquet as pq
from starlette.testclient import TestClient

from eval_pipeline_tests.view.homes import HOSTILE, HOSTILE_TEXTS
from eval_pipeline_tests.view.pages import Parts, turns_of


def got(client: TestClient, form: str, **more: object) -> bytes:
    (address,) = Parts(client.get(turns_of(HOSTILE, **more)).text).links(f"turns.{form}?")
    answer = client.get(address)
    assert answer.headers["content-disposition"].startswith("attachment")
    return answer.content


def test_parquet_has_the_turns_as_they_are(client: TestClient) -> None:
    rows = pq.read_table(io.BytesIO(got(client, "parquet", tag=HOSTILE_TEXTS[0], sort="turn_index", order="desc")))
    assert rows["turn_index"].to_pylist() == [6, 5, 4, 3, 2, 1, 0]
    assert rows["question"][6].as_py() == f"what of {HOSTILE_TEXTS[0]}?"
    assert {"logic_f1", "failure_mode", "tokens", "tags"} <= set(rows.column_names)


def test_csv_has_no_formula_and_nothing_for_a_terminal(client: TestClient) -> None:
    text = got(client, "csv").decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 31
    for row in rows:
        for name, value in row.items():
            assert not value.startswith(("=", "@", "+", "\t")), name
    assert "\x1b" not in text and "\u202e" not in text
    assert {row["case_id"][:2] for row in rows} == {"sh", "'="}


def test_a_filter_that_finds_nothing_gives_headers_alone(client: TestClient) -> None:
    assert got(client, "csv", q="nothing at all").decode().count("\n") == 1
    assert pq.read_table(io.BytesIO(got(client, "parquet", q="nothing at all"))).num_rows == 0


def test_there_is_no_other_form(client: TestClient) -> None:
    assert client.get(turns_of(HOSTILE).replace("/turns?", "/turns.exe?")).status_code == 400
