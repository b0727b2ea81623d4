"""CSV of users: nothing is dropped in silence, whichever importer reads it."""

from io import StringIO

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.reading.csv_files import open_csv, open_table
from eval_pipeline_tests.goldens import golden

CASES = golden("foreign_csv.yaml")


@pytest.mark.parametrize("case", CASES["read"], ids=lambda case: case["what"])
def test_rows_are_read_with_their_lines(case: dict[str, object]) -> None:
    found = open_csv(StringIO(str(case["text"]), newline=""), "a.csv", str(case.get("separator", ",")))
    assert [[row.line, row.last_line, named] for row, named in found.named()] == case["rows"]


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["what"])
def test_what_would_be_lost_is_refused(case: dict[str, str]) -> None:
    with pytest.raises(InputError) as refused:
        list((open_table if "of_database" in case else open_csv)(StringIO(case["text"], newline=""), "a.csv").named())
    assert str(refused.value) == case["told"]


@pytest.mark.parametrize("case", CASES["not_whole"], ids=lambda case: case["what"])
def test_rows_of_a_table_have_as_many_cells_as_its_header(case: dict[str, str]) -> None:
    with pytest.raises(InputError) as refused:
        list(open_csv(StringIO(case["text"], newline=""), "a.csv").whole())
    assert str(refused.value) == case["told"]
