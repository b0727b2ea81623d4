"""`report.html` as text and as a real browser shows it."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from browser import CHROMIUM, chromium
from evaluations import Made, evaluate, make_home
from hypothesis import given
from hypothesis import strategies as st
from outline import Outline
from playwright.sync_api import Browser, Page

from eval_pipeline.core import shown
from eval_pipeline.core.model import Partition
from eval_pipeline.providers import registry
from eval_pipeline.reports.charts.evaluation import evaluation_charts
from eval_pipeline.reports.html.drawing import allotted, clipped, common_bound, drawn_turns, size
from eval_pipeline.reports.html.page import write_page
from eval_pipeline.reports.html.turns import turn_cards
from eval_pipeline.reports.queries import RIGHT
from eval_pipeline.store.tables import GENERATIONS, TURNS
from eval_pipeline_tests.chains import ran
from eval_pipeline_tests.support import DAY, Lab, Puppet, case, surroundings

HOSTILE = """</script></pre></details><script>document.title='hacked'</script>
<img src=x onerror="document.title='hacked'"> {{ 7*7 }} ]]> <!-- &lt; \u202e"""


@pytest.fixture(scope="module")
def markup(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def outline(markup: str) -> Outline:
    return Outline(markup)


def test_nothing_is_loaded_from_anywhere_and_charts_lie_there_as_files_too(
    outline: Outline, markup: str, folder: Path
) -> None:
    policy = next(found["content"] or "" for found in outline.of("meta") if "http-equiv" in found)
    assert policy.startswith("default-src 'none';")
    assert "'unsafe-inline'" not in policy.split("script-src")[1]
    assert not outline.of("img")
    assert [found["href"] for found in outline.of("link")] == ["data:,"]
    assert all("src" not in found for found in outline.of("script"))
    assert not re.search(r"@import|url\((?!#)", markup)
    names = {path.stem for path in (folder / "charts").iterdir()}
    assert names == {found["id"] for found in outline.of("figure")}
    assert {"accuracy-by-turn-number", "accuracy-by-operations", "error-class"} <= names
    text = "".join(outline.text)
    order = [
        text.index(told)
        for told in ("A right turn costs", "Failure modes", "the most frequent kind first", "Coverage:")
    ]
    assert order == sorted(order), "figures, pictures, mistakes; then all figures, folded"
    assert [found.get("open") for found in outline.of("details") if found.get("class") == "figures"] == [None, None]
    for name in names:
        assert (folder / "charts" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / "charts" / f"{name}.svg").read_text()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a model that answers with markup, to a question of markup, in a case named so."""
    lab = Lab.at(tmp_path_factory.mktemp("hostile"))
    asked = case('x"><b>', ("10", 10.0))
    asked["turns"][0]["question"] = HOSTILE
    folder = lab.suite(cases=())
    (folder / "cases" / "one.yaml").write_text(json.dumps(asked))
    lab.versions({"name": "puppet", "provider": "puppet"})
    Puppet.reset()
    with patch.dict(registry.PROVIDERS, puppet="eval_pipeline_tests.support:Puppet"), surroundings(lab):
        Puppet.answer = staticmethod(lambda call: HOSTILE)
        lab.evaluate()
        found: Path = ran(lab.workspace(), Partition("small", "puppet", DAY), "report").facts["folder"]
    Puppet.reset()
    return found / "report.html"


def test_the_report_of_243_turns_has_at_most_twelve_printed_pages(tmp_path: Path) -> None:
    """By a browser of its own: no home can be made while the others' browser is open."""
    assert CHROMIUM is not None
    made = evaluate(make_home(tmp_path, files=100), "weak")
    assert made.evaluation.turns >= 243
    page, printed = tmp_path / "page", tmp_path / "printed.pdf"
    page.mkdir()
    write_page(made.evaluation, page)
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    command += [f"--print-to-pdf={printed}", (page / "report.html").as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) <= 12


def test_hostile_texts_of_a_model_stay_texts(hostile: Path) -> None:
    markup = hostile.read_text(encoding="utf-8")
    outline = Outline(markup)
    assert outline.tags["script"] == 1
    assert "img" not in outline.tags
    texts = "".join(outline.text)
    assert texts.count(HOSTILE.replace("\u202e", r"\u202e")) >= 2, "the question and the response"
    assert "\u202e" not in str(texts)
    (turn,) = [found for found in outline.of("details") if found.get("class") == "t"]
    assert turn["id"] == 'x"><b>#0'


def test_every_turn_is_there_with_its_outcome_below_the_headline(outline: Outline, folder: Path, weak: Made) -> None:
    errors = pq.read_table(folder / "errors.parquet").to_pylist()
    wrong = {f"{row['conversation_id']}#{row['turn_idx']}": row["failure_mode"] or row["error_type"] for row in errors}
    rows = pq.read_table(folder / "turns.parquet").to_pylist()
    places = [f"{row['conversation_id']}#{row['turn_idx']}" for row in rows]
    turns = [found for found in outline.of("details") if found.get("class") == "t"]
    assert [found["id"] for found in turns] == places
    assert {found["id"]: found["data-kind"] for found in turns} == {place: wrong.get(place, RIGHT) for place in places}
    assert len(set(wrong.values())) > 1
    assert not [found for found in outline.of("a") if "traces/" in (found["href"] or "")], (
        "dead once the page is mailed"
    )
    assert f"All {len(places)} turns." in "".join(outline.text)
    text = "".join(outline.text)
    row = weak.evaluation.overall["correct"]
    figures = shown.rate(row["mean"], row["low"], row["high"]), shown.interval(row["low"], row["high"])
    assert f"Accuracy (numerical_match){''.join(figures)}{row['n']}" in text
    assert "SIMULATED: these responses are not a real model's" in text
    assert weak.evaluation.cost["usd_reason"] in text


def test_a_turn_shows_gold_response_prompt_metrics_and_conversation_whole(weak: Made, outline: Outline) -> None:
    cards = turn_cards(weak.evaluation, drawn_turns(weak.evaluation), weak.workspace.home.reports)
    assert (cards.bound, cards.prompt_bound) == (None, None)
    text, seen = "".join(outline.text), 0
    responses = {row["turn_id"]: row["response"] for row in weak.evaluation.rows(GENERATIONS)}
    gold = {row["turn_id"]: json.loads(row["gold"]) for row in weak.evaluation.rows(TURNS)}
    for turn_id, response in responses.items():
        card = next(card for card in cards.cards if turn_id.endswith(f"/{card.place}"))
        texts = {part.name: part.text for part in card.texts}
        said = {None: "no response", "": "(an empty response)"}.get(response, response)
        assert (texts["Response"], texts["Response"] in text) == (said, True)
        assert f"program: {gold[turn_id]['program']}" in texts["Gold"]
        assert texts["Prompt"] in text
        assert "numerical_match: " in texts["Metrics"]
        assert card.place in [said.place for said in card.conversation if said.is_this] or not card.conversation
        seen += len(card.conversation) > 1
    assert seen > 10


def test_many_turns_are_a_fair_sample_that_says_so(weak: Made) -> None:
    every, few = drawn_turns(weak.evaluation), drawn_turns(weak.evaluation, 30)
    assert not every.is_sample
    assert few.is_sample
    assert sum(shown for _, shown in few.outcomes.values()) == len(few.kinds) == 30
    assert {kind: there for kind, (there, _) in few.outcomes.items()} == {
        kind: there for kind, (there, _) in every.outcomes.items()
    }
    assert few.kinds.items() <= every.kinds.items()
    assert drawn_turns(weak.evaluation, 30) == few, "the same ones each time"
    more = drawn_turns(weak.evaluation, 40)
    assert few.kinds.keys() <= more.kinds.keys()
    with patch("eval_pipeline.reports.html.page.drawn_turns", lambda _: few):
        folder = weak.workspace.home.root / "sampled"
        folder.mkdir()
        write_page(weak.evaluation, folder)
    told = "".join(Outline((folder / "report.html").read_text()).text)
    assert f"30 of {every.turns} turns, a sample by outcome" in told


@given(st.lists(st.integers(0, 400), min_size=1, max_size=12), st.integers(1, 500))
def test_a_sample_is_in_proportion_and_leaves_no_outcome_out(sizes: list[int], most: int) -> None:
    shares = allotted(sizes, most)
    assert all(share <= size for share, size in zip(shares, sizes, strict=True))
    assert all(share >= min(size, 5) for share, size in zip(shares, sizes, strict=True))
    least = sum(min(size, 5) for size in sizes)
    assert sum(shares) == min(sum(sizes), max(most, least))
    if sum(sizes) > most > least:
        rest = [(size - 5, share - 5) for size, share in zip(sizes, shares, strict=True) if size > 5]
        exact = (most - least) / sum(size for size, _ in rest)
        assert all(abs(share - size * exact) <= 1 for size, share in rest)


@given(st.lists(st.integers(0, 5000), max_size=30), st.integers(0, 20_000), st.integers(1, 4000))
def test_texts_are_cut_at_one_length_that_fits_the_room(sizes: list[int], room: int, most: int) -> None:
    bound = common_bound(sizes, room, most)
    assert bound <= most
    assert sum(min(taken, bound) for taken in sizes) <= room or bound == most <= min(sizes, default=most)
    if bound < most:
        assert sum(min(taken, bound + 1) for taken in sizes) > room, "the greatest one"


def test_long_texts_are_cut_with_a_note_and_the_page_says_where(weak: Made) -> None:
    cards = turn_cards(
        weak.evaluation, drawn_turns(weak.evaluation), weak.workspace.home.reports, room=20_000, prompt_room=30_000
    )
    assert None not in (cards.bound, cards.prompt_bound)
    texts = [part for card in cards.cards for part in card.texts]
    assert sum(size(part.text) for part in texts if part.name != "Prompt") < 20_000 + 40 * len(texts)
    assert any("… [cut: " in part.text for part in texts)


def test_bars_of_failure_modes_tell_form_from_meaning() -> None:
    groups = [
        {"grouping": "failure_mode", "value": mode, "turns": turns, "share": turns / 7}
        for mode, turns in (("wrong_filter", 4), ("row_order", 3))
    ]
    told = {"ceilings": (), "levels": (), "error_groups": groups, "profile": SimpleNamespace(charts=None)}
    for forms in (Counter(row_order=2), None):
        evaluation = SimpleNamespace(**told, wrong_in_form=forms, optional=lambda _: [])
        (chart,) = evaluation_charts(cast("Any", evaluation))
        assert ("2 right but for form" in chart.svg) is bool(forms)
        assert [row[3:] for row in chart.rows] == ([["0"], ["2"]] if forms else [[], []])
        assert ("2 of all are right but for form" in chart.description) is bool(forms)


def test_tables_charts_and_links_can_be_used_without_seeing(outline: Outline) -> None:
    assert all(found.get("scope") in ("col", "row") for found in outline.of("th"))
    assert outline.tags["main"] == outline.tags["header"] == outline.tags["footer"] == outline.tags["h1"] == 1
    charts = outline.of("svg")
    assert len(charts) == outline.tags["figure"] == outline.tags["figcaption"] > 3
    ids = Counter(found["id"] for _, found in outline.attributes if "id" in found)
    for chart in charts:
        assert chart["role"] == "img"
        assert len(chart["aria-label"] or "") > 40
    assert [place for place, times in ids.items() if times > 1] == []
    assert outline.of("html")[0]["lang"] == "en"
    targets = [found["href"] or "" for found in outline.of("a") if (found["href"] or "").startswith("#")]
    assert len(targets) > 5
    assert {unquote(target[1:]) for target in targets} <= ids.keys()


@given(st.text(max_size=300), st.integers(1, 50), st.integers(40, 4000))
def test_a_clipped_text_takes_no_more_than_its_room(text: str, times: int, most: int) -> None:
    from markupsafe import escape

    cut = clipped(text * times, most)
    note = re.search(r" … \[cut: ([\d,]+) characters\]$", cut) if cut != text * times else None
    body = cut if note is None else cut[: note.start()]
    assert (text * times).startswith(body)
    if note is not None:
        assert int(note[1].replace(",", "")) == len(text * times)
    else:
        assert len(str(escape(cut)).encode()) <= most + len(text * times)


@pytest.fixture(scope="module")
def browser(folder: Path, hostile: Path) -> Iterator[Browser]:
    """Opened after the pages are made: no evaluation runs in a thread that Playwright's loop has taken."""
    with chromium() as found:
        yield found


@contextmanager
def opened(browser: Browser, path: Path) -> Iterator[Page]:
    """The page on a phone's screen; fails where it says anything on the console or asks for anything."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url))
    page.goto(path.as_uri())
    yield page
    assert [text for text in said if text != path.as_uri() and not text.startswith("data:")] == []
    page.close()


@pytest.mark.services("browser")
@pytest.mark.parametrize("name", ["weak", "hostile"])
def test_on_a_phone_nothing_but_tables_is_wider_than_the_screen(
    browser: Browser, folder: Path, hostile: Path, name: str
) -> None:
    with opened(browser, hostile if name == "hostile" else folder / "report.html") as page:
        page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert "hacked" not in page.title()


@pytest.mark.services("browser")
def test_rows_of_tables_are_low_on_a_phone_and_stay_with_their_head_on_paper(browser: Browser, folder: Path) -> None:
    """A column that is narrow because the screen is would fold its texts, seen or not, into ten lines and more."""
    with opened(browser, folder / "report.html") as page:
        heights = page.evaluate("[...document.querySelectorAll('tr:has(.long)')].map(row => row.offsetHeight)")
        page.emulate_media(media="print")
        heads = "[...document.querySelectorAll('thead, caption')]"
        assert set(page.evaluate(f"{heads}.map(head => getComputedStyle(head).breakAfter)")) == {"avoid"}
    assert len(heights) > 5
    assert max(heights) < 844 / 6


@pytest.mark.services("browser")
def test_turns_are_filtered(browser: Browser, folder: Path) -> None:
    with opened(browser, folder / "report.html") as page:
        turns = page.locator(".t")
        kind = turns.first.get_attribute("data-kind")
        page.locator("select[name=kind]").select_option(kind)
        assert page.locator(f".t:visible[data-kind={kind}]").count() == page.locator(".t:visible").count()
        assert 0 < page.locator(".t:visible").count() < turns.count()
        page.locator("select[name=kind]").select_option("!right")
        assert 0 < page.locator(".t:visible").count() == page.locator(".t:not([data-kind=right])").count()
        page.locator("select[name=kind]").select_option("")
        word = turns.last.get_attribute("id") or ""
        page.locator("input[name=text]").fill(f"{word} ")
        assert page.locator(".t:visible").count() == 1
        assert page.locator("#shown").inner_text() == f"1 of {turns.count()} shown"
        page.get_by_role("button", name="Open all shown").click()
        assert page.locator(".t[open]").count() == 1


@pytest.mark.services("browser")
def test_the_keyboard_reaches_the_content_first_and_a_link_to_a_turn_opens_it(browser: Browser, hostile: Path) -> None:
    with opened(browser, hostile) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        page.evaluate("location.hash = encodeURIComponent('x\"><b>#0')")
        page.wait_for_selector(".t[open]")
