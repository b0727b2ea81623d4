"""What code depends on: anything by which it may come out otherwise, or not to be told."""

from pathlib import Path

import pytest

from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.pandas_code.cases.source import read_tables
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code
from eval_pipeline_plugins.tracks.pandas_code.running import steady
from eval_pipeline_plugins.tracks.pandas_code.running.steady import depends_on, is_steady
from eval_pipeline_tests.tracks.pandas_code.helpers import TOTALS, read, shared

CODE = 'result = df.groupby("fruit")["amount"].sum()'


@pytest.mark.parametrize(
    "code",
    [
        "result = df.sample(3, random_state=numpy.random.default_rng())",
        "import random\nresult = random.random()",
        "from numpy import random as r\nresult = r.rand()",
        "result = pd.Timestamp.now()",
        'result = pd.to_datetime("now")',
        'result = pd.Timestamp("Today")',
        "from datetime import date\nresult = date.today()",
        "import time\nresult = time.time()",
        "import os\nresult = os.getpid()",
        'result = __builtins__["hash"]("a")',
        "result = ().__class__",
        'result = getattr(pd, "Time" + "stamp")',
        'exec("result = 1")',
        "result = id(df)",
        "import os.path",
        "this is (no program, now",
        "result = \N{FULLWIDTH LATIN SMALL LETTER H}ash(df",
        "result = df.__class__(",
        "result = df.query('d < @pd.Timestamp.now()')",
        "result = df.query('d < \"NOW\"')",
        "import timeit\nresult = timeit.default_timer()",
        "result = np.empty(3)",
        "result = pd.read_csv('/proc/uptime')",
        "    return np.datetime64('NOW')",
    ],
)
def test_what_may_come_out_otherwise_is_not_kept(code: str) -> None:
    assert not is_steady(code)


@pytest.mark.parametrize(
    "code",
    [
        CODE,
        "result = 1",
        "",
        'result = df[df["fruit"] == "pear"].shape[0]',
        "df[df.sensor_id.cos(",
        "result = df.query('id > 3').empty",
    ],
)
def test_ordinary_code_is(code: str) -> None:
    assert is_steady(code)


def key(
    folder: Path, code: str = CODE, *, old: str = "", new: str = "", gold: str = "", with_gold: bool = True
) -> str | None:
    """The key of an answer, after one change in a file of tables, or with other reference code."""
    folder.mkdir()
    found = shared(folder)
    if old:
        path = folder / "tables" / "sold.csv"
        path.write_text(path.read_text().replace(old, new))
        found = read_tables(folder, {})
    case = read(TOTALS | ({"turns": [{"question": "What is it?", "code": gold}]} if gold else {}), found)
    told: Json = depends_on(case, case.turns[0] if with_gold else None, Code(code))
    return None if told is None else json_hash(told)


def test_a_cell_the_code_the_gold_and_libraries_are_in_the_key_and_the_folder_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = key(tmp_path / "a")
    assert first is not None and key(tmp_path / "b") == first
    others = [
        key(tmp_path / "c", old="Lund,9", new="Lund,8"),
        key(tmp_path / "d", CODE + " "),
        key(tmp_path / "e", with_gold=False),
        key(tmp_path / "f", gold='result = df["amount"].sum()'),
    ]
    assert len({first, *others}) == 5
    assert key(tmp_path / "g", "import time\nresult = 1") is None
    monkeypatch.setattr(steady, "installed", lambda names: [f"{name} 9" for name in names])
    assert key(tmp_path / "h") not in {None, first, *others}
