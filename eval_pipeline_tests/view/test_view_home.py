"""Home: every suite with its model versions, newest first, with the figures of the store."""

import re
from contextlib import nullcontext
from datetime import date
from html import escape
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from eval_pipeline.core import shown
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.operations.runs.evaluations import evaluation_of
from eval_pipeline.reports.contents.facts import warnings
from eval_pipeline.view.overview.kept import KeptViews, keep_columns, keep_view, kept_in
from eval_pipeline.view.page import Bench
from eval_pipeline.view.pages.home import cards_of
from eval_pipeline.view.published import StoreView
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.view.homes import FALLING, HOSTILE, STEADY, SUITE
from eval_pipeline_tests.view.pages import PORT, Parts, changed, is_harmless, let_in, turns_of

URL = f"http://127.0.0.1:{PORT}"


def test_model_versions_come_newest_first_with_the_figures_of_the_leaderboard_and_lead_to_turns(
    client: TestClient, look: StoreView
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
        ends = row["low"], row["high"]
        assert f"{shown.rate(row['accuracy'], *ends)} {shown.interval(*ends)}" in text
    assert "−39 points on 2026-03-02 against 2026-03-01" in text
    assert f"−39 points {FALLING} on {SUITE}" in text, "what is lost comes first"
    for address in rows:
        assert client.get(address).status_code == 200


def test_the_first_home_page_of_a_store_asks_nothing_twice_and_lists_no_catalog(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planning a query takes longer than to run it, and DuckDB's lists of all tables and columns longest."""
    asked: list[str] = []
    execute = StoreView._execute
    monkeypatch.setattr(StoreView, "_execute", lambda self, *said: asked.append(repr(said)) or execute(self, *said))
    with Bench.of(home) as bench, bench.published.look() as look:
        assert cards_of(look, {}, with_retired=False)
        assert 5 < len(asked) == len(set(asked))
        assert not [sql for sql in asked if "duckdb_" in sql]
        assert look.has("coverage", "implausible")
        assert not (look.has("coverage", "nothing_of_it") or look.has("nothing"))


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
    assert "on 2026-03-02 against 2026-03-01 acknowledged by B: it is known" in text
    assert "another" not in text
    assert "too early" not in text


@pytest.mark.always
def test_who_was_asked_a_part_comes_last_with_counts_where_nothing_bears_an_interval_and_is_in_no_picture(
    home: Home, tmp_path: Path
) -> None:
    statements = (
        "UPDATE runs SET scope = '{\"sample_size\":1}' WHERE model_version = 'falling'",
        "UPDATE statistics SET low = NULL, high = NULL WHERE model_version = 'falling'",
    )
    with changed(home, tmp_path, *statements) as reader:
        html, matrix = reader.get("/").text, reader.get(f"/suites/{SUITE}/matrix").text
    assert [row.partition("?")[2].split("&")[0] for row in Parts(html).rows()] == [
        f"model_version={quote(name)}" for name in (HOSTILE, STEADY, FALLING)
    ]
    assert "falling 61.3% 19 of 31" in Parts(html).text
    assert "61.3% a part 19 of 31" in Parts(matrix).text
    assert not [link for link in Parts(matrix.partition("Pairs that differ")[0]).links("/compare?") if FALLING in link]
    assert Parts(matrix).text.index(STEADY) < Parts(matrix).text.index(FALLING)
    assert FALLING not in "".join(re.findall(r"<svg.*?</svg>", html))
    assert "2 of 3 model versions; 1 asked another part of the suite" in Parts(html).text


_SIX_OF_TWELVE = (
    "DELETE FROM turn_results WHERE eval_date = '2026-03-01' AND NOT case_id BETWEEN 'ship_' AND 'ship_05'",
    "UPDATE turn_results SET correct = turn_index = 0 WHERE eval_date = '2026-03-01'",
    "INSERT INTO turn_errors SELECT * REPLACE (DATE '2026-03-01' AS eval_date) FROM turn_errors "
    "WHERE model_version = 'falling' AND case_id < 'ship_06'",
)
_ONE_MORE = (
    "DELETE FROM turn_errors WHERE model_version = 'falling' AND case_id <> 'ship_01'",
    "UPDATE turn_results SET correct = true WHERE model_version = 'falling' AND case_id <> 'ship_01'",
)


@pytest.mark.parametrize(
    ("statements", "shares", "grew"),
    [
        ((), "12 of 31 turns, 38.7%; 0 of 31 on 2026-03-01, 0.0%; on the turns that both have +39 points", True),
        (_SIX_OF_TWELVE, "12 of 31 turns, 38.7%; 6 of 12 on 2026-03-01, 50.0%; on the turns that both have 0", False),
        (_ONE_MORE, "1 of 31 turns, 3.2%; 0 of 31 on 2026-03-01, 0.0%; on the turns that both have +3 points", False),
    ],
    ids=["twelve more", "twice as many of more turns", "one more"],
)
def test_a_way_to_fail_has_grown_if_the_paired_test_says_so(
    home: Home, tmp_path: Path, statements: tuple[str, ...], shares: str, grew: bool
) -> None:
    beside = f"/suites/{SUITE}/compare?versions={FALLING},{FALLING}&eval_dates=2026-03-01,2026-03-02"
    with changed(home, tmp_path, *statements) as reader:
        card, compared = reader.get("/").text, reader.get(beside).text
    text = Parts(card).text
    assert f"wrong_operations: {shares}" in text
    assert ("significantly more" in text, "not significantly different" in text) == (grew, not grew)
    for page in (card, compared):
        (drawn,) = re.findall("<svg[^>]*How answers.*?</svg>", page)
        assert ("figure worse" in drawn) is grew
        is_harmless(page)
    table = compared.partition('id="how-wrong"')[2].partition("</table>")[0]
    assert ('class="alarm"' in table) is grew


def test_a_card_tells_of_a_model_where_there_is_one_and_of_stand_ins_elsewhere(home: Home, tmp_path: Path) -> None:
    tables = ("turn_results", "model_versions")
    statements = [f"UPDATE {table} SET simulated = model_version <> 'steady'" for table in tables]
    with changed(home, tmp_path, *statements) as reader:
        html = reader.get("/").text
    assert "Ask about steady" in Parts(html).text
    accuracy, *_, cost = (a["aria-label"] or "" for tag, a in Parts(html).elements if tag == "svg")
    assert ("falling" in accuracy, "falling" in cost, "steady" in cost) == (True, False, True)


@pytest.mark.parametrize(
    ("known", "drawn", "about"),
    [
        ("model_version = 'steady'", {"steady"}, "without falling, hostile: tokens unknown"),
        ("model_version <> 'steady'", {"falling", "hostile"}, "without steady: tokens unknown"),
        ("false", set(), "Neither dollars nor tokens are known."),
    ],
)
def test_who_has_no_known_cost_is_named_beside_the_chart_of_the_others(
    home: Home, tmp_path: Path, known: str, drawn: set[str], about: str
) -> None:
    statements = (
        f"UPDATE turn_results SET tokens = NULL, usd = NULL WHERE NOT ({known})",
        f"UPDATE cost_per_correct_answer SET tokens_total = NULL, usd_total = NULL WHERE NOT ({known})",
    )
    with changed(home, tmp_path, *statements) as reader:
        html = reader.get("/").text
    *_, last = (a["aria-label"] or "" for tag, a in Parts(html).elements if tag == "svg")
    found = last if last.startswith("Cost") else ""
    assert {name for name in (STEADY, FALLING, "hostile") if f"{name}: " in found.partition(": ")[2]} == drawn
    assert about in Parts(html).text


def test_a_reader_chooses_of_which_model_version_a_card_tells(client: TestClient) -> None:
    html = client.get(f"/?show=cases&about={SUITE}/{STEADY}&about=other/x").text
    is_harmless(html)
    assert "Ask about steady" in Parts(html).text
    assert "falling on 2026-03-02 against" not in Parts(html).text, "neither do the pictures tell of another"
    assert f'<option value="{SUITE}/{STEADY}" selected>' in html
    form = html.partition('<form class="told"')[2].partition("</form>")[0]
    kept = re.findall('name="(show|about|retired)" value="([^"]*)"', form)
    assert kept == [("show", "cases"), ("about", "other/x")], "what else the address asks for stays"
    for unknown in ("nobody", "", "</option><script>"):
        text = client.get("/", params={"about": f"{SUITE}/{unknown}"}).text
        is_harmless(text)
        assert f"Ask about {FALLING}" in Parts(text).text


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
    names = [attributes["id"] for tag, attributes in found if tag == "h2"][:-1]
    assert names == ["suite-zebra", "suite-harbour", "suite-aaa"]


def test_each_picture_tells_its_figures_and_each_mark_leads_to_the_turns_behind_it(
    client: TestClient, look: StoreView
) -> None:
    html = client.get("/").text
    found = Parts(html).elements
    told = [a["aria-label"] or "" for tag, a in found if tag == "svg"]
    assert len(told) == 4
    accuracy, modes, tags, cost = told
    assert "falling: 61% on 2026-03-02, a loss is open" in accuracy
    ((wrong,),) = [[*row.values()] for row in look.rows(
        "SELECT count(*) FROM turn_errors WHERE model_version = 'falling' AND eval_date = DATE '2026-03-02'"
    )]  # fmt: skip
    assert f": {wrong} of 31 turns, 38.7%; 0 of 31 on 2026-03-01" in modes
    # Half of what was asked under each tag is wrong now; the paired test adds two conversations, at 0.05 / 2 for each.
    assert "even: −50 points [−77 to +2], 6 broken and 0 fixed of 12" in tags
    assert "falling: 110 tokens a turn, 61%" in cost
    links = {link for svg in re.findall(r"<svg.*?</svg>", html) for link in Parts(svg).links()}
    assert len(links) > 6
    assert {link.partition("?")[2].count("tag=") for link in links} == {0, 1}
    for link in links:
        answer = client.get(link)
        assert (answer.status_code, "No turn" in answer.text) == (200, False), link


def test_each_way_to_fail_leads_to_as_many_turns_as_it_tells_where_some_have_no_failure_mode(
    home: Home, tmp_path: Path
) -> None:
    some = "turn_id <= (SELECT quantile_disc(turn_id, 0.4) FROM turn_errors WHERE model_version = 'falling')"
    statements = [f"UPDATE {table} SET failure_mode = NULL WHERE {some}" for table in ("turn_errors", "finqa_turns")]
    with changed(home, tmp_path, *statements) as reader:
        found = Parts(reader.get("/").text)
        (words,) = [a["aria-label"] or "" for _, a in found.elements if (a.get("aria-label") or "").startswith("How ")]
        links = [link for link in dict.fromkeys(found.links()) if "failure_mode=" in link or "error_class=" in link]
        counts = [re.search(r"([\d,]+) of 31 turns", Parts(reader.get(link).text).text)[1] for link in links]
    assert counts == re.findall(r": (\d+) of 31 turns", words)
    assert len(counts) == 2


def test_columns_are_chosen_and_kept_and_views_too(client: TestClient, home: Home, tmp_path: Path) -> None:
    """By forms, into one file of the project, which leads back to what was kept."""
    with Bench.of(Home(home.root, tmp_path)) as bench:
        reader = let_in(bench)
        asked = [
            a["data-header"] for tag, a in Parts(reader.get("/?show=tokens&show=dates").text).elements if tag == "td"
        ]
        assert asked[:2] == ["Dates", "Tokens"]
        view = turns_of(FALLING, verdict="wrong")
        page = reader.get(view).text
        assert f'name="address" value="{escape(view)}"' in page
        origin = {"Origin": URL}
        for said in ({"name": " Lost  <b>ships ", "address": view}, {"show": ["cases", "nothing"]}):
            answer = reader.post("/views", data=said, headers=origin, follow_redirects=False)
            assert (answer.status_code, answer.headers["location"]) == (303, said.get("address", "/"))
        shown = Parts(reader.get("/").text)
        assert "Lost <b>ships" in shown.text
        assert view in shown.links()
        assert {a["data-header"] for tag, a in shown.elements if tag == "td"} == {"Cases"}
        reader.post("/views", data={"remove": "Lost <b>ships"}, headers=origin)
        assert kept_in(bench.home) == KeptViews((), ("cases",))
        (tmp_path / "views.yaml").write_text("views: [")
        assert "not YAML" in Parts(reader.get("/").text).text, "the page does without"


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("views: [", "not YAML"),
        ("[]", "expected `views` and `columns`, and nothing else"),
        ("views: {}\ncolumns: x", "`columns`: expected a list"),
        ("columns: [1]", "`columns`: expected names of columns, found 1"),
        ("views: [{name: a}]", "view 1: expected the texts `name` and `address`"),
        ("views: [{name: a, address: /}, {name: b, address: 'http://x.invalid/'}]", "view 2: its address is none"),
        ("views: [{name: a, address: //x.invalid/suites/a}]", "view 1: its address is none"),
        ("views: [{name: '', address: /}]", "view 1: its name needs 1 to 80 characters"),
    ],
)
def test_a_file_of_views_that_is_wrong_is_told_and_kept(tmp_path: Path, written: str, why: str) -> None:
    (tmp_path / "views.yaml").write_text(written)
    project = Home(tmp_path, tmp_path)
    with pytest.raises(UsageError, match=f"^{re.escape(str(tmp_path / 'views.yaml'))}: .*{re.escape(why)}"):
        keep_columns(project, ["cases"])
    assert (tmp_path / "views.yaml").read_text() == written


def test_only_views_that_can_be_read_again_are_kept(tmp_path: Path) -> None:
    project = Home(tmp_path, tmp_path)
    names = ["a: b", "'", '"', "- x", "null", "1", "#", "{", "é☃", "x" * 80]
    for name in (*names, "", "\ud800", "\x1b", "\u202e", "x" * 81):
        with nullcontext() if name in names else pytest.raises(UsageError, match="1 to 80 characters"):
            keep_view(project, name, f"/suites/a/turns?q={quote(name, errors='replace')}")
    assert [(view.name, view.address) for view in kept_in(project).views] == [
        (name, f"/suites/a/turns?q={quote(name)}") for name in names
    ]
