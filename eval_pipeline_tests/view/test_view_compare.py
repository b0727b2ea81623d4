"""Side by side: which evaluations, groups against a recount by hand, the paired test, pages, filters, hostile texts."""

import re
from collections import Counter
from datetime import date

import pytest
from starlette.testclient import TestClient

from eval_pipeline.analysis.comparisons.chosen.shown import comparisons_of, referenced
from eval_pipeline.core import shown
from eval_pipeline.core.model import CallErrorKind, Partition
from eval_pipeline.providers.base import Call, CallError
from eval_pipeline.reports.charts.svg.rows import GAIN, LOSS, SAME
from eval_pipeline.store.published.query import run_query
from eval_pipeline.view import evaluation as found_evaluations
from eval_pipeline.view.comparing import breakdown, found
from eval_pipeline.view.comparing import sides as found_sides
from eval_pipeline.view.comparing.breakdown import by_tag, kinds
from eval_pipeline.view.comparing.found import order, with_what_was_said
from eval_pipeline.view.comparing.sql import Choice, position_from, position_text
from eval_pipeline.view.evaluation import evaluation_at, listed
from eval_pipeline.view.overview.parts import ModeChange
from eval_pipeline.view.page import Bench
from eval_pipeline.view.published import StoreView
from eval_pipeline_tests.support import Answer, Lab, Puppet, case, number
from eval_pipeline_tests.view.homes import FALLING, FIRST, HOSTILE, HOSTILE_TEXTS, LAST, STEADY, SUITE, TURNS
from eval_pipeline_tests.view.pages import Parts, is_harmless, let_in

SIDES = {"A": (FALLING, FIRST), "B": (FALLING, LAST), "C": (HOSTILE, LAST)}


def compared(*sides: tuple[str, date], **more: str) -> str:
    """Address of evaluations side by side."""
    names, days = (",".join(str(side[n]) for side in sides) for n in (0, 1))
    return f"/suites/{SUITE}/compare?versions={names}&eval_dates={days}" + "".join(f"&{k}={v}" for k, v in more.items())


NIGHTS = (SIDES["A"], SIDES["B"])
ALL = tuple(SIDES.values())


def rows(client: TestClient, *sides: tuple[str, date], **more: str) -> list[str]:
    """`<case>#<index>` of the turns that a page shows."""
    return rows_at(client, compared(*sides, **more))


def rows_at(client: TestClient, address: str) -> list[str]:
    """`<case>#<index>` of the turns of the page at an address."""
    addresses = Parts(client.get(address).text).rows()
    return [re.findall(r"turn_id=harbour%2F(.*?)&", one)[0].replace("%23", "#") for one in addresses]


def evaluations(look: StoreView, *sides: tuple[str, date]) -> list:
    return [evaluation_at(look, Partition(SUITE, *side)) for side in sides]


def test_how_the_wrong_answers_of_a_group_fail(client: TestClient, look: StoreView) -> None:
    sides = evaluations(look, *NIGHTS)
    wrong = look.rows(
        f"SELECT r.*, t.failure_mode FROM turn_results AS r JOIN {sides[0].track_table} AS t "
        "USING (suite, model_version, eval_date, turn_id, sample) WHERE NOT r.correct"
    )
    said = {
        (row["model_version"], row["eval_date"], row["turn_id"]): row["failure_mode"] or row["error_class"]
        for row in wrong
    }
    for choice in (Choice(), Choice(group="rw"), Choice(tag="nobody has it")):
        turns = order(look, sides, choice)
        ids = [row["turn_id"] for row in look.rows(turns.sql)]
        found = kinds(look, sides, turns, {})
        for place, side in enumerate(NIGHTS):
            counted = Counter(said[*side, one] for one in ids if (*side, one) in said)
            assert {kind.name: kind.turns[place] for kind in found if kind.turns[place]} == counted
    grown, *others = kinds(look, sides, order(look, sides, Choice()), {})
    assert grown.growth == grown.turns[1] - grown.turns[0] > max((kind.growth for kind in others), default=0)
    address = compared(*NIGHTS, kind=grown.name)
    text = Parts(client.get(address).text).text
    assert f"{grown.name} {grown.turns[0]} {grown.turns[1]} +{grown.growth}" in text
    assert len(rows_at(client, address)) == grown.turns[1]
    assert rows(client, *NIGHTS, kind="nobody's") == []


def test_what_has_grown_significantly_comes_first(look: StoreView, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([{"much": 1, "surely": 1, "less": 9}, {"much": 7, "surely": 4, "less": 2}])
    monkeypatch.setattr(breakdown, "_counted", lambda *_: next(counts))
    changes = {
        "much": ModeChange(0.2, -0.1, 0.5, SAME), "surely": ModeChange(0.1, 0.05, 0.15, LOSS),
        "less": ModeChange(-0.2, -0.3, -0.1, GAIN),
    }  # fmt: skip
    sides = evaluations(look, *NIGHTS)
    assert [one.name for one in kinds(look, sides, order(look, sides, Choice()), changes)] == ["surely", "much", "less"]


def test_tags_tell_what_only_one_has_right(client: TestClient, look: StoreView) -> None:
    """Every second ship is odd; each has one turn that was right and is wrong, or the other way round."""
    for sides, (lost, won) in ((NIGHTS, (6, 0)), (NIGHTS[::-1], (0, 6))):
        found = by_tag(look, evaluations(look, *sides), Choice())
        assert [(one.tag, one.turns, one.lost, one.won) for one in found] == [
            (tag, 12, lost, won) for tag in ("even", "odd")
        ]
    page = Parts(client.get(compared(*NIGHTS)).text)
    (odd,) = page.links("group=regressions&tag=odd")
    assert rows_at(client, odd) == [f"ship_{n:02}#1" for n in range(1, 12, 2)]


@pytest.mark.parametrize(
    "sides", [NIGHTS, NIGHTS[::-1], (SIDES["B"], SIDES["C"]), ALL, (SIDES["C"], *NIGHTS, (STEADY, FIRST))]
)
def test_groups_are_those_that_a_recount_finds(look: StoreView, sides: tuple) -> None:
    said = {
        (row["model_version"], row["eval_date"], row["turn_id"]): row for row in look.rows("SELECT * FROM turn_results")
    }
    turns = sorted({(row["case_id"], row["turn_index"], row["turn_id"]) for row in said.values()})
    wanted = []
    for case_id, index, turn_id in turns:
        results = [said[(*side, turn_id)] for side in sides]
        code = "".join("r" if row["correct"] else "w" for row in results)
        answers = {row["answer"] for row in results}
        if set(code) == {"r"}:
            code = "all-right"
        elif set(code) == {"w"}:
            code = "all-wrong-alike" if len(answers) == 1 and None not in answers else "all-wrong-differently"
        ranks = {"all-right": 70, "all-wrong-alike": 50, "all-wrong-differently": 40}
        rank = ranks.get(code, (30 if code.startswith("w") else 0) + code.count("r"))
        wanted.append((rank, code, case_id, index, 0, turn_id))
    mine = order(look, evaluations(look, *sides), Choice())
    read = [tuple(row.values()) for row in look.rows(mine.sql)]
    assert read == sorted(wanted)
    assert dict(mine.groups) == Counter(row[1] for row in wanted)


def test_pages_walk_through_all_turns_and_back(look: StoreView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "PAGE_SIZE", 7)
    turns = order(look, evaluations(look, *ALL), Choice())
    every = [row["turn_id"] for row in look.rows(turns.sql)]
    walked, page = [], turns.page(None, backwards=False)
    while True:
        walked += [row["turn_id"] for row in page.rows]
        if not page.after:
            break
        last = with_what_was_said(look, evaluations(look, *ALL), page.rows)[-1].place
        page = turns.page(position_from(position_text(last)), backwards=False)
    assert walked == every
    back = [row["turn_id"] for row in page.rows]
    while page.before:
        first = with_what_was_said(look, evaluations(look, *ALL), page.rows)[0].place
        page = turns.page(first, backwards=True)
        back = [row["turn_id"] for row in page.rows] + back
    assert back == every


@pytest.mark.always
def test_regressions_come_first_home_leads_there_and_each_to_its_turns(client: TestClient) -> None:
    html = client.get(compared(*NIGHTS)).text
    is_harmless(html)
    page = Parts(html)
    assert rows(client, *NIGHTS)[:12] == [f"ship_{n:02}#1" for n in range(12)]
    assert "Only B wrong 12" in page.text
    # Pictures come first; each mark leads to the turns behind it.
    head = html.partition("Paired test")[0]
    assert all(told in head for told in (f"A, {FIRST}: ", f"B, {LAST}: ", "How answers fail, B beside A: "))
    assert head.count("&amp;kind=") == len(set(re.findall(r"&amp;kind=([^#]*)#turns", head))) > 0
    assert "All right 19" in page.text
    assert f"{TURNS} turns that all have" in page.text
    first = page.rows()[0]
    assert "model_version=falling&eval_date=2026-03-02" in first
    other = [one for one in page.links("ship_00%231") if "eval_date=2026-03-01" in one]
    assert other
    for address in (first, *other):
        assert client.get(address).status_code == 200
    assert compared(*NIGHTS) in Parts(client.get("/").text).links("/compare?")


def test_a_turn_of_side_by_side_leads_to_the_next_one_there(client: TestClient) -> None:
    """In the order of the comparison, within its filter, on the same side; up to the page that begins with it."""
    turns = rows(client, *NIGHTS, tag="odd", group="rw")
    assert len(turns) > 3
    page = Parts(client.get(compared(*NIGHTS, tag="odd", group="rw")).text)
    address, walked = page.rows()[0], []
    for _ in turns:
        turn = Parts(client.get(address).text)
        walked.append(address.partition("turn_id=harbour%2F")[2].partition("&")[0].replace("%23", "#"))
        assert f"{len(walked)} of {len(turns)} turns side by side" in turn.text
        assert f"{FALLING}, {LAST}" in turn.text
        up = turn.link("data-up")
        assert rows_at(client, up)[0] == walked[-1]
        address = turn.link("data-later") or ""
        assert not address or f"model_version={FALLING}&eval_date={LAST}" in address
    assert walked == turns
    assert not address
    # Each answer is reviewed blind, and the list is not left.
    first = page.links("/review?")[0]
    review = client.get(first).text
    assert "Not blind: you come from the group “Only B wrong”." in review, "which tells the verdict"
    for address in (first.replace("&group=rw", ""), turn.link("data-review") or "", page.links("/review?")[1]):
        assert "/review?" in address and "Not blind: you come from" in client.get(address).text, "it told the verdict"
    later = Parts(review).link("data-later") or ""
    assert "told" not in later
    assert "Not blind" not in client.get(later.replace("&group=rw", "")).text, "of the next one nothing was told"
    assert 'name="verdict"' in review and "✗" not in review and "✓" not in review
    assert review.count("/review?") >= 3, "the turn before or after, and both sides"
    # The same turn of the others, and back.
    others = turn.links("tag=odd")
    assert {f"eval_date={day}" for day in (FIRST, LAST)} <= {one for link in others for one in link.split("&")}
    for link in others:
        assert client.get(link).status_code == 200


def test_a_turn_of_a_comparison_that_is_gone_is_shown_among_those_of_its_evaluation(client: TestClient) -> None:
    address = Parts(client.get(compared(*NIGHTS)).text).rows()[0]
    page = Parts(client.get(address.replace(f"eval_dates={FIRST}", "eval_dates=2020-01-01")).text)
    assert f"of {TURNS} turns" in page.text
    assert "turns side by side" not in page.text
    assert (page.link("data-up") or "").startswith(f"/suites/{SUITE}/turns?")


def test_words_and_rows_that_differ_are_marked(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    html = client.get(compared(*NIGHTS)).text
    assert "<del>17</del><ins>-1</ins>" in html
    assert "<del>document</del>" in html

    def result(row: dict) -> dict:
        return {"columns": ["<b>n"], "rows": [[1], [None]] if row["correct"] else [["<i>x"], [1]]}

    monkeypatch.setattr(found, "_result", result)
    html = client.get(compared(*NIGHTS)).text
    is_harmless(html)
    text = Parts(html).text
    assert "1 rows as A, 1 only of A, 1 only of B. Rows only of A <b>n NULL Rows only of B <b>n <i>x" in text
    turned = {True: [[1], [2]], False: [[2], [1]]}
    monkeypatch.setattr(found, "_result", lambda row: {"columns": ["n"], "rows": turned[row["correct"]]})
    assert "The same 2 rows as A, in another order." in Parts(client.get(compared(*NIGHTS)).text).text


def test_the_filter_is_by_group_tag_and_text_and_its_sql_runs_as_it_is(client: TestClient, bench: Bench) -> None:
    assert rows(client, *NIGHTS, group="rw", tag="odd") == [f"ship_{n:02}#1" for n in range(1, 12, 2)]
    assert rows(client, *NIGHTS, group="regressions", q="SHIP_07") == ["ship_07#1"]
    assert rows(client, *NIGHTS, q="ship_07") == ["ship_07#1", "ship_07#0"]
    assert len(rows(client, SIDES["A"], SIDES["C"], q="ONERROR=")) == 13, "most of them in a response only"
    assert rows(client, *NIGHTS, group="wr") == []
    html = client.get(compared(*NIGHTS, tag="odd")).text
    assert "12 of 31 turns" in Parts(html).text
    assert "Only B wrong 6" in Parts(html).text
    html = client.get(compared(*NIGHTS, group="regressions", tag="even", q="ship")).text
    sql = Parts(html.partition('id="sql">')[2].partition("</pre>")[0]).texts[0]
    there = [row.replace("#", "") for row in rows(client, *NIGHTS, group="regressions", tag="even", q="ship")]
    found = run_query(bench.home.store, sql)["turn_id"].to_pylist()
    assert [turn.removeprefix("harbour/").replace("#", "") for turn in found] == there


@pytest.mark.always
def test_the_paired_test_is_the_published_one_or_made_for_the_page(client: TestClient, look: StoreView) -> None:
    """Seen from either side: what one gains the other has lost."""
    row = look.rows(f"SELECT * FROM model_comparisons WHERE model_a = '{FALLING}' AND model_b = '{STEADY}'")[0]
    assert row["broken"] != row["fixed"]
    there = Parts(client.get(compared((FALLING, LAST), (STEADY, FIRST))).text).text
    back = Parts(client.get(compared((STEADY, FIRST), (FALLING, LAST))).text).text
    assert "B against A: B (steady) is better" in there
    assert "B against A: A (steady) is better" in back
    assert "Corrected for 3 pairs" in there
    points = shown.points(row["difference"], row["low"], row["high"])
    assert f" {points} {shown.interval(row['low'], row['high'], 'points')} " in there
    assert points.replace("+", "−") in back
    assert "Tested for this page" not in there
    text = Parts(client.get(compared(*NIGHTS)).text).text
    for words in (
        "B against A: A (falling, 2026-03-01) is better",
        "Tested for this page alone",
        "worse than the date before",
        points.replace("+", "−"),
    ):
        assert words in text


def test_what_was_asked_another_part_of_the_suite_is_told(
    client: TestClient, look: StoreView, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "B was asked another part of the suite than A: only 31 common turns are compared"
    assert told not in Parts(client.get(compared(*NIGHTS)).text).text
    assert _charted(client, *ALL) == ["A", "B", "C"]
    rows = [row | {"scope": '{"cases":["x"]}'} if row["eval_date"] == LAST else row for row in listed(look, SUITE)]
    monkeypatch.setattr(found_evaluations, "listed", lambda *_: rows)
    assert told in Parts(client.get(compared(*NIGHTS)).text).text
    assert _charted(client, *NIGHTS) == [], "accuracies on different parts stand in no chart"
    assert _charted(client, SIDES["B"], SIDES["C"], SIDES["A"]) == ["A", "B"]
    assert found_sides.other_parts(look, evaluations(look, *ALL)) == ["B", "C"]
    assert found_sides.other_parts(look, evaluations(look, SIDES["B"], SIDES["C"])) == []


def _charted(client: TestClient, *sides: tuple[str, date]) -> list[str]:
    """Letters of the evaluations in the chart of accuracies."""
    found = Parts(client.get(compared(*sides)).text).elements
    told = [a["aria-label"] or "" for tag, a in found if tag == "svg"]
    return [letter for one in told if one.startswith("Accuracy: ") for letter in re.findall(r"[:;] ([A-F]), ", one)]


def test_an_address_that_leaves_something_open_is_completed(client: TestClient) -> None:
    def leads(query: str) -> str:
        answer = client.get(f"/suites/{SUITE}/compare{query}", follow_redirects=False)
        assert answer.status_code == 303, query
        return answer.headers["location"].partition("?")[2]

    newest = f"versions={FALLING},{HOSTILE}&eval_dates={LAST},{LAST}"
    assert leads("") == newest
    assert leads(f"?versions={HOSTILE},{FALLING}") == f"versions={HOSTILE},{FALLING}&eval_dates={LAST},{LAST}"
    older_first = f"versions={STEADY},{HOSTILE}&eval_dates={FIRST},{LAST}"
    assert leads(f"?versions={HOSTILE}&versions={STEADY}") == older_first, "a form"
    assert leads(f"?side={FALLING},{LAST}&side=&side={FALLING},{FIRST}&group=rw") == (
        f"versions={FALLING},{FALLING}&eval_dates={LAST},{FIRST}&group=rw"
    )
    assert leads(f"?versions={STEADY},{HOSTILE}&eval_dates={FIRST}&q=x") == f"{older_first}&q=x"
    final = client.get(f"/suites/{SUITE}/compare?{newest}", follow_redirects=False)
    assert final.status_code == 200


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        (f"versions={STEADY}", 400, "two to six"),
        (f"versions={STEADY},{STEADY}", 400, "different"),
        (f"versions={STEADY},{FALLING}&eval_dates=2026-03-01,2020-01-01", 404, "no evaluation of &#39;falling&#39;"),
        (f"versions={STEADY},{FALLING}&eval_dates=x", 400, "&#39;x&#39; is not a date"),
        (f"versions={STEADY},{FALLING}&eval_dates={FIRST},{LAST},{LAST}", 400, "more dates"),
        (f"versions={STEADY},nobody", 404, "&#39;nobody&#39;"),
        (f"versions={STEADY},{FALLING}&group=rwr", 400, "no group"),
        (f"versions={STEADY},{FALLING}&eval_dates={FIRST},{LAST}&after=[1]", 400, "invalid position"),
        (f"versions={STEADY},{FALLING}&q=%00", 400, "not a text"),
    ],
)
def test_wrong_addresses_are_told_in_a_sentence(client: TestClient, query: str, status: int, words: str) -> None:
    answer = client.get(f"/suites/{SUITE}/compare?{query}")
    assert answer.status_code == status
    assert words.replace("two to six", "2 to 6") in answer.text


def test_hostile_texts_are_shown_and_nothing_else(client: TestClient) -> None:
    html = client.get(compared(*ALL)).text
    is_harmless(html)
    assert "&lt;script&gt;" in html
    for text in HOSTILE_TEXTS[:5]:
        answer = client.get(f"/suites/{SUITE}/compare", params={"versions": f"{STEADY},{HOSTILE}", "tag": text})
        assert answer.status_code == 200
        is_harmless(answer.text)
        assert f"{len(HOSTILE_TEXTS)} of {TURNS} turns" in Parts(answer.text).text
    assert len(html) < 600_000


SILENT = CallError(CallErrorKind.TIMEOUT, "nobody answered")


def evaluated(lab: Lab, version: str, said: dict[int, Answer | CallError]) -> None:
    def answer(call: Call) -> Answer | CallError:
        return said.get(int(call.case_id[1:]), call.gold.oracle()) if call.case_id[0] == "c" else number(-3)

    Puppet.answer = staticmethod(answer)
    lab.evaluate(version=version, epoch=version, run_id=version, publish=True)


def page_text(lab: Lab) -> str:
    with Bench.of(lab.home) as bench:
        return Parts(let_in(bench).get("/suites/small/compare?versions=one,two").text).text


def test_groups_say_the_same_as_the_paired_test_and_what_has_another_gold_is_left_out(small: Lab) -> None:
    """Which counts what both answered; what one of them did not answer is a group of its own.

    Of ten conversations and three further turns `one` has one other wrong, `two` one other, and four unanswered.
    """
    small.suite(cases=[case(f"c{n:02}", ("50", 50.0), ("add(50, 7)", 57.0)) for n in range(10)])
    small.versions({"name": "one", "provider": "puppet"}, {"name": "two", "provider": "puppet"})
    evaluated(small, "one", {0: number(1), 1: number(-1)})
    evaluated(small, "two", {1: number(-1), 2: number(-1), 3: SILENT, 4: SILENT})
    workspace = small.workspace()
    row = comparisons_of(workspace, referenced(workspace, ["small"], ["one", "two"]), ())["small"][0]
    groups = "Only B wrong 2 Not answered by all 4 Only A wrong 2 All wrong alike: the same answer 5 All right 10"
    text = page_text(small)
    assert f"All groups 23 {groups}" in text
    assert (row["broken"], row["fixed"], row["conservative_n"] - row["n"]) == (2, 2, 4)
    assert "unanswered as wrong 23" in text
    assert "Tested for this page alone" in text
    small.suite(cases=[case("c09", ("51", 51.0), ("add(50, 7)", 57.0))])
    evaluated(small, "two", {})
    text = page_text(small)
    assert "22 turns that all have" in text
    assert "one further turn was asked or is to be answered otherwise" in text
    assert "not tested: not compared: they were not scored by the same edition of the gold" in text
