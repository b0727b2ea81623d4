"""What the lint says of reference code: clocks and cut ties, and nothing of what only looks alike."""

from typing import Any

import pytest

from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasShared
from eval_pipeline_plugins.tracks.pandas_code.responses.lint import clocks
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_tests.tracks.pandas_code.helpers import read

pytestmark = pytest.mark.usefixtures("working_sandbox")


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("result = pd.Timestamp.now()", ["pd.Timestamp.now()"]),
        ("import datetime\nresult = datetime.date.today().year", ["datetime.date.today()"]),
        ("from time import time_ns\nresult = time_ns()", ["time_ns()"]),
        ("import time\nresult = time.time()", ["time.time()"]),
        ("result = df[df.sold_on > pd.to_datetime('today')]", ["pd.to_datetime('today')"]),
        ("result = np.datetime64('now')", ["np.datetime64('now')"]),
        ("now = 3\nresult = df['today'].time() if False else now", []),
        ("result = pd.to_datetime('2024-01-01').time()", []),
    ],
)
def test_code_that_reads_the_clock(code: str, found: list[str]) -> None:
    assert list(clocks(code)) == found


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        # two sales of Oslo and Bergen have the amount 8 or are equal in count
        ("result = df.groupby('city').size().reset_index(name='n').nlargest(2, 'n')", "cut_tie"),
        ("result = df['fruit'].value_counts().index[1]", "cut_tie"),
        ("result = df.groupby('city')['amount'].count().loc[['Bergen', 'Lund']].idxmax()", "cut_tie"),
        ("result = df.nlargest(2, 'amount')[['fruit', 'amount']]", None),
        ("result = df.sort_values('city').reset_index(drop=True)[['city']]", None),  # ties, but none is cut
        ("result = df.drop_duplicates('fruit')[['fruit']]", None),  # which of them remains, nobody sees
        ("result = df.drop_duplicates('fruit')[['fruit', 'amount']]", "cut_tie"),
        ("result = df.sort_values('fruit', kind='stable')['amount'].head(1)", None),  # the order of the table is meant
        ("result = df.sort_values('city', ascending=False)[['city', 'fruit']]", None),  # though order counts
        ("result = len(df) + 0 * pd.Timestamp.now().year", "clock"),
    ],
)
def test_ties_that_the_code_cuts(stall: PandasShared, code: str, kind: str | None) -> None:
    raw: dict[str, Any] = {"id": "a", "tables": "sold", "turns": [{"question": "?", "code": code, "ordered": True}]}
    doubts = TRACK.contradictions(read(raw, stall))
    assert [doubt.evidence.partition(":")[0] for doubt in doubts] == ([kind] if kind else [])
    assert all(doubt.linted for doubt in doubts)
    assert TRACK.contradictions(read(raw | {"tags": [kind or "none"]}, stall)) == []
