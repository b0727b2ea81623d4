"""Empty groups that the given tables do not have refute no answer; values at the edges of bins do."""

from typing import Any

import pytest

from eval_pipeline.core.model import Case
from eval_pipeline.tracks.pandas_code.cases.source import PandasShared, read_tables
from eval_pipeline.tracks.pandas_code.robust.answers import behaviour_of
from eval_pipeline.tracks.pandas_code.robust.variants import tie_breaking
from eval_pipeline.variants.holes import other_holes
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.pandas_code.helpers import needs_sandbox, read

FULL = [(n, n + 0.5 if n != 9 else "", "abd"[n % 3], "uv"[n // 3 % 2], n // 31 + 3, n % 31 + 1) for n in range(1, 61)]
PIVOT = 'result = df.pivot_table(index="k", columns="c", values="x", aggfunc="sum", fill_value=0)'


@pytest.fixture(scope="module")
def table(home: object, working_sandbox: None, tmp_path_factory: pytest.TempPathFactory) -> PandasShared:
    folder = tmp_path_factory.mktemp("full")
    (folder / "tables").mkdir()
    lines = [f"{x},{y},{k},{c},2024-{month:02}-{min(day, 30):02}" for x, y, k, c, month, day in FULL]
    (folder / "tables" / "full.csv").write_text("\n".join(["x,y,k,c,day", *lines, ""]))
    return read_tables(folder, {})


def _case(table: PandasShared, code: str) -> Case:
    dated = f'df = df.assign(day=pd.to_datetime(df["day"]))\n{code}' if "day" in code else code
    return read({"id": "c", "tables": "full", "turns": [{"question": "Which?", "code": dated}]}, table)


@needs_sandbox
@pytest.mark.parametrize("case", golden("pandas_holes.yaml"), ids=lambda case: case["name"])
def test_golden_answers(case: dict[str, Any], table: PandasShared) -> None:
    gold = _case(table, case["reference"]).turns[0].gold
    dated = 'df = df.assign(day=pd.to_datetime(df["day"]))\n' if "day" in case["answer"] else ""
    found = behaviour_of(gold, dated + case["answer"])
    assert found is not None
    assert len(found.right) >= 3
    assert all(found.right) == case["robust"]


@needs_sandbox
def test_where_the_given_tables_have_holes_other_holes_count(table: PandasShared) -> None:
    full, some = (_case(table, code).turns[0].gold for code in (PIVOT, PIVOT.replace("df.", "df[df['x'] < 4].")))
    assert len(tie_breaking(full)) == 2
    assert len(tie_breaking(some)) == 1


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("result = df['x'].sum()", 0),
        ("result = df.groupby('k', observed=True)['x'].sum()", 0),
        ("result = df.groupby('k', observed=False)['x'].sum()", 1),
        ("result = df.groupby('k').resample('D', on='day')['x'].sum().unstack()", 2),
        ("result = df.set_index('day').asfreq('D').reindex(columns=['x'])", 2),
        ("result = [" + "df['k'].value_counts(), " * 9 + "]", 4),
    ],
)
def test_one_call_is_changed_at_a_time(code: str, count: int) -> None:
    found = other_holes(code)
    assert len({*found, code}) == len(found) + 1 == count + 1
