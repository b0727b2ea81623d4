"""Where a wrong attempt left the way, and what it never looked at; attempts are written by hand and nothing is run."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from eval_pipeline.core.model import Json, ToolCall
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentCase
from eval_pipeline_plugins.tracks.agent.metrics import FAILURE_MODES, failure_mode, first_wrong_step, never_looked
from eval_pipeline_plugins.tracks.agent.running import proving
from eval_pipeline_plugins.tracks.agent.track import TRACK
from eval_pipeline_plugins.tracks.agent.trajectory import ActStep, Trajectory
from eval_pipeline_plugins.tracks.agent.way.chain import WayStep, leading_to
from eval_pipeline_plugins.tracks.agent.way.facts.told import CodeFact, Facts, plainly
from eval_pipeline_plugins.tracks.agent.way.finding import way_details
from eval_pipeline_plugins.tracks.agent.way.reads import Touched
from eval_pipeline_tests.goldens import golden

GOLDEN: Mapping[str, Any] = golden("agent_ways.yaml")
ARGUMENTS = {"sql": "query", "python": "code", "shell": "command", "ask_user": "question", "answer": "answer"}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("books")
    files = folder / "worlds" / "shop" / "files"
    (files / "notes").mkdir(parents=True)
    for path in ("notes/terms.md", "notes/keys.md", "prices.csv", "shop.sqlite"):
        (files / path).write_bytes(b"")
    (files / "notes" / "keys.md").write_text("bot crawler\n")
    (files / "words.json").write_text('["bot", "crawler"]')
    (files / "numbers.txt").write_text("A number is `C-` and digits.\n")
    (files / "paid.sql").write_text("SELECT * FROM {{ source('raw', 'orders') }} WHERE status = 'paid'\n")
    (files.parent / "world.yaml").write_text("description: A shop.\ndatabases:\n  shop: {file: shop.sqlite}\n")
    return folder


def steps_of(told: list[list[Any]]) -> tuple[ActStep, ...]:
    return tuple(
        ActStep("tool", result, (ToolCall("", name, {ARGUMENTS.get(name, "path"): argument}),))
        for name, argument, result in told
    )


def case_of(suite: Path, name: str) -> AgentCase:
    told = GOLDEN["tasks"][name]
    gold = [{call: argument} for call, argument, _ in told["gold"]]
    raw = {"id": name, "world": "shop", **told, "gold": gold}
    return TRACK.read_case(raw, "books", "cases.yaml", 1, TRACK.read_shared(suite, {}))


def details(suite: Path, name: str, steps: tuple[ActStep, ...], failed: Any, ended: str = "answered") -> dict[str, Any]:
    gold = Trajectory(steps_of(GOLDEN["tasks"][name]["gold"]))
    return way_details(case_of(suite, name), Trajectory(steps, ended=ended), gold, {}, failed)


FOREIGN: Mapping[str, tuple[tuple[str, str], ...]] = {
    "sql": (("run_sql", "query"), ("execute", "statement"), ("Query", "sql")),
    "python": (("run_python", "source"), ("ipython", "cell"), ("execute_code", "code")),
    "shell": (("bash", "cmd"), ("Bash", "command"), ("exec_command", "cmd")),
    "read_file": (("Read", "file_path"), ("view", "path"), ("open_file", "filename")),
    "list_files": (("LS", "path"), ("list_directory", "path"), ("glob", "path")),
}


def in_foreign_words(step: ActStep, which: int) -> ActStep:
    call = step.calls[0]
    if call.name not in FOREIGN:
        return step
    name, field = FOREIGN[call.name][which]
    return replace(step, calls=(ToolCall("", name, {field: next(iter(call.arguments.values()))}),))


@pytest.mark.parametrize("way", GOLDEN["ways"], ids=lambda one: f"{one['task']}: {one['why']}")
def test_where_an_attempt_went_wrong_whatever_its_tools_are_called(suite: Path, way: Mapping[str, Any]) -> None:
    failed: tuple[str, dict[str, Json]] = ("answer", {"number": way.get("number", 0), "words": "another"})
    if "cannot be answered" in str(way["steps"][-1]):
        failed[1]["declined"] = True
    if "failed" in way:
        failed = ("state", {"words": way["failed"], "beside": way.get("beside", [])})
    steps, ended = steps_of(way["steps"]), way.get("ended", "answered")
    found = details(suite, way["task"], steps, [failed], ended)
    assert (found["mode"], found["step"]) == (way["mode"], way["step"]), found["words"]
    assert found["words"]
    assert way.get("says", "") in found["words"]
    assert found["mode"] is None or found["mode"] in FAILURE_MODES
    for which in range(3):
        theirs = tuple(in_foreign_words(one, which) for one in steps)
        assert details(suite, way["task"], theirs, [failed], ended) == found


@pytest.mark.parametrize("told", golden("agent_golds.yaml"), ids=lambda one: one["why"])
def test_an_answer_that_the_golds_own_calls_do_not_give_is_doubted(
    suite: Path, told: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = tuple(replace(one, cut="is_cut" in told) for one in steps_of(told["gold"]))
    monkeypatch.setattr(proving, "gold_run", lambda case: Trajectory(steps))
    raw = {"id": "g", "world": "shop", "task": "How many? Were there more in the mornings?"}
    raw |= {name: told[name] for name in ("then", "accept", "checks", "unanswerable") if name in told}
    raw["gold"] = [{call: argument} for call, argument, _ in told["gold"]]
    case = TRACK.read_case(raw, "books", "cases.yaml", 1, TRACK.read_shared(suite, {}))
    found = [one.evidence for one in TRACK.contradictions(case)]
    assert [f"its answer {told['doubt']};" in one for one in found] == ([] if told["doubt"] is None else [True]), found


@pytest.mark.parametrize("name", GOLDEN["tasks"])
def test_no_gold_that_is_right_is_doubted(suite: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gold = Trajectory(steps_of(GOLDEN["tasks"][name]["gold"]))
    monkeypatch.setattr(proving, "gold_run", lambda case: gold)
    assert TRACK.contradictions(case_of(suite, name)) == []


@pytest.mark.parametrize(
    ("name", "arguments", "read"),
    [
        ("shell", {"command": ["bash", "-lc", "cat prices.csv"]}, ["prices.csv"]),
        ("exec", {"command": ["head", "-3", "prices.csv"]}, ["prices.csv"]),
        ("duck", {"q": "SELECT * FROM 'prices.csv'"}, ["prices.csv"]),
        ("search", {"query": "select prices"}, []),
        ("search", {"query": "prices.csv"}, []),
        ("Write", {"file_path": "prices.csv", "content": "x"}, []),
        ("bash", {"cmd": 3, "path": None}, []),
    ],
)
def test_what_a_foreign_call_reads(suite: Path, name: str, arguments: dict[str, Json], read: list[str]) -> None:
    step = ActStep("tool", "1", (ToolCall("", name, arguments),))
    found = details(suite, "revenue", (step,), [])["reads"].get("0", [])
    assert [one for one in found if one != "shop"] == read


@pytest.mark.parametrize("name", GOLDEN["tasks"])
def test_nothing_is_looked_for_in_a_right_attempt(suite: Path, name: str) -> None:
    found = details(suite, name, steps_of(GOLDEN["tasks"][name]["gold"]), [])
    assert (found["mode"], found["step"], found["never_looked"]) == (None, None, [])
    assert failure_mode(True, {}, {"mode": "invented"}, "answered", answered=True) is None
    assert first_wrong_step(True, {"step": 3}) is None


READS = [
    ("sql", "SELECT a FROM orders JOIN s.items USING (id)", {"shop", "orders", "items"}),
    ("sql", "SELECT sql FROM sqlite_master", {"shop"}),
    ("sql", "SELECT * FROM paid", {"shop", "paid", "orders"}),
    ("python", "import pandas as pd\npd.read_csv('prices.csv')", {"prices.csv"}),
    (
        "python",
        "import sqlite3\nsqlite3.connect('file:shop.sqlite?mode=ro', uri=True).execute('SELECT * FROM orders')",
        {"shop", "orders"},
    ),
    (
        "python",
        "from pathlib import Path\n[one.read_text() for one in Path('notes').glob('*.md')]",
        {"notes/terms.md", "notes/keys.md"},
    ),
    ("python", "for n in names:\n    open(f'notes/{n}.md').read()", {"notes/terms.md", "notes/keys.md"}),
    ("python", "import duckdb\nduckdb.sql(\"SELECT * FROM 'prices.csv'\")", {"prices.csv"}),
    ("shell", "cat notes/*.md | head", {"notes/terms.md", "notes/keys.md"}),
    ("shell", "cd . && grep -rn paid notes", {"notes/terms.md", "notes/keys.md"}),
    ("shell", "ls -R . && find notes", set()),
    ("shell", "sqlite3 shop.sqlite 'SELECT * FROM orders'", {"shop", "orders"}),
    ("shell", "python3 - <<'END'\nprint(open('prices.csv').read())\nEND", {"prices.csv"}),
    ("read_file", "./notes/terms.md", {"notes/terms.md"}),
    ("ask_user", "Do guests count?", {"what the user says: Guests do not count."}),
]


@pytest.mark.parametrize(("tool", "argument", "reads"), READS)
def test_what_a_call_reads(suite: Path, tool: str, argument: str, reads: set[str]) -> None:
    said = "Guests do not count." if tool == "ask_user" else "x"
    found = details(suite, "best", steps_of([[tool, argument, said]]), [])
    assert set(found["reads"].get("0", [])) == reads
    failed = ActStep("tool", "no", steps_of([[tool, argument, ""]])[0].calls, "syntax_error")
    if tool != "ask_user":
        assert details(suite, "best", (failed,), [])["reads"] == {}, "a call that failed showed nothing"


def test_what_the_gold_reads_and_an_attempt_never_did_is_counted(suite: Path) -> None:
    found = details(suite, "revenue", steps_of([["sql", "SELECT 1 FROM orders", "1"]]), [])
    assert found["never_looked"] == ["notes/terms.md"]
    assert (never_looked(found), never_looked({})) == (1, None)


def test_a_program_that_is_nested_deeply_tells_nothing(suite: Path) -> None:
    deep = f"print({'(' * 90}1{')' * 90})\nx = {' + '.join(['y'] * 4000)}"
    found = details(suite, "revenue", steps_of([["python", deep, "7"], ["answer", 7, ""]]), [("answer", {"number": 0})])
    assert found["mode"] in (None, "not_looked")


def test_many_keys_in_code_are_looked_up_at_once() -> None:
    """Results of thousands of keys, and then code with as many others: seconds would stop the scoring of a suite."""
    keys = ",".join(f"ab{number}" for number in range(1000, 3700))
    told = [["sql", f"q{n}", keys[n:]] for n in range(9)] + [["sql", f"ab3000,{keys}".replace(",ab", ",zz"), ""]]
    counted = Facts([CodeFact("aggregate", "count")])
    steps = [WayStep(n, one, Touched(), counted, *[frozenset[str]()] * 2) for n, one in enumerate(steps_of(told))]
    began = process_time()
    assert [one.place for one in leading_to(steps, steps[-1])] == [8, 9]
    assert process_time() - began < 2.0


@pytest.mark.parametrize("given", [10**400, "9" * 400, 1e308, 5e-324, float("nan"), f"0.{'0' * 400}1"])
@pytest.mark.parametrize("where", ["x * 1e200 > 1e-200", "made < '2024-05 23:00'"])
def test_figures_beyond_all_measure_stop_nothing(suite: Path, given: Json, where: str) -> None:
    query = f"SELECT 1e200 * sum(qty * price) / 1e-200 FROM orders WHERE {where}"
    steps = steps_of([["sql", query, f"round\n{given}"], ["answer", given, ""]])
    assert details(suite, "revenue", steps, [("answer", {"number": 0})])["mode"] in {*FAILURE_MODES, None}


def test_an_hour_without_a_day_is_no_period() -> None:
    condition = CodeFact("where", "made < 2024-05 23:00")
    assert plainly(Facts([condition])) == {condition: 1}
    assert plainly(Facts([CodeFact("where", "made < 2024-05-31 23:00")])) == {CodeFact("where", "made < 2024-06-01"): 1}
