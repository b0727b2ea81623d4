"""`report.html` as text and as a real browser shows it."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from browser import chromium, needs_chromium
from evaluations import Made
from hypothesis import given
from hypothesis import strategies as st
from outline import Outline
from playwright.sync_api import Browser, Page

from eval_pipeline.core.model import Partition
from eval_pipeline.providers import registry
from eval_pipeline.reports.html.failed import clipped
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


def test_nothing_is_loaded_from_anywhere(outline: Outline, markup: str) -> None:
    policy = next(found["content"] or "" for found in outline.of("meta") if "http-equiv" in found)
    assert policy.startswith("default-src 'none';")
    assert "'unsafe-inline'" not in policy.split("script-src")[1]
    assert not outline.of("img")
    assert [found["href"] for found in outline.of("link")] == ["data:,"]
    assert all("src" not in found for found in outline.of("script"))
    assert not re.search(r"@import|url\((?!#)", markup)


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


def test_hostile_texts_of_a_model_stay_texts(hostile: Path) -> None:
    markup = hostile.read_text(encoding="utf-8")
    outline = Outline(markup)
    assert outline.tags["script"] == 1
    assert "img" not in outline.tags
    texts = "".join(outline.text)
    assert texts.count(HOSTILE) >= 2, "the question and the response"
    assert outline.of("details")[-1]["id"] == 'x"><b>#0'


def test_every_failed_turn_is_there_and_leads_to_its_trace(outline: Outline, folder: Path) -> None:
    errors = pq.read_table(folder / "errors.parquet").to_pylist()
    wanted = [f"{row['conversation_id']}#{row['turn_idx']}" for row in errors]
    turns = [found for found in outline.of("details") if found.get("class") == "t"]
    assert [found["id"] for found in turns] == wanted
    assert {found["data-kind"] for found in turns} == {row["failure_mode"] or row["error_type"] for row in errors}
    links = [unquote(found["href"] or "") for found in outline.of("a") if "traces/" in (found["href"] or "")]
    assert len(links) == len(wanted)
    assert all((folder / link).is_file() for link in links)


def test_headline_figures_are_those_of_the_statistics(weak: Made, outline: Outline) -> None:
    text = "".join(outline.text)
    row = weak.evaluation.overall["correct"]
    assert f"Accuracy (numerical_match){row['mean']:.1%}{row['low']:.1%} to {row['high']:.1%}{row['n']}" in text
    assert "SIMULATED: these responses are not a real model's" in text
    assert weak.evaluation.cost["usd_reason"] in text


def test_tables_and_charts_can_be_read_without_seeing(outline: Outline) -> None:
    assert all(found.get("scope") in ("col", "row") for found in outline.of("th"))
    assert outline.tags["main"] == outline.tags["header"] == outline.tags["footer"] == outline.tags["h1"] == 1
    charts = outline.of("svg")
    assert len(charts) == outline.tags["figure"] == outline.tags["desc"] > 3
    ids = Counter(found["id"] for _, found in outline.attributes if "id" in found)
    for chart in charts:
        assert chart["role"] == "img"
        assert all(place in ids for place in (chart["aria-labelledby"] or "").split())
    assert [place for place, times in ids.items() if times > 1] == []
    assert outline.of("html")[0]["lang"] == "en"


def test_every_link_within_the_page_leads_somewhere(outline: Outline) -> None:
    ids = {found["id"] for _, found in outline.attributes if "id" in found}
    targets = [found["href"] or "" for found in outline.of("a") if (found["href"] or "").startswith("#")]
    assert len(targets) > 5
    assert {target[1:] for target in targets} <= ids


def test_charts_lie_there_as_files_too(folder: Path, outline: Outline) -> None:
    names = {path.stem for path in (folder / "charts").iterdir()}
    assert names == {found["id"] for found in outline.of("figure")}
    assert {"accuracy-by-turn-number", "accuracy-by-operations", "error-class"} <= names
    for name in names:
        assert (folder / "charts" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / "charts" / f"{name}.svg").read_text()


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


@needs_chromium
@pytest.mark.parametrize("name", ["weak", "hostile"])
def test_on_a_phone_nothing_but_tables_is_wider_than_the_screen(
    browser: Browser, folder: Path, hostile: Path, name: str
) -> None:
    with opened(browser, hostile if name == "hostile" else folder / "report.html") as page:
        page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert "hacked" not in page.title()


@needs_chromium
def test_notes_beside_a_phones_screen_make_no_tall_rows(browser: Browser, folder: Path) -> None:
    """A column that is narrow because the screen is would fold its texts, seen or not, into ten lines and more."""
    with opened(browser, folder / "report.html") as page:
        heights = page.evaluate("[...document.querySelectorAll('tr:has(.long)')].map(row => row.offsetHeight)")
    assert len(heights) > 5
    assert max(heights) < 844 / 6


@needs_chromium
def test_the_head_of_a_table_stays_with_its_rows_on_paper(browser: Browser, folder: Path) -> None:
    with opened(browser, folder / "report.html") as page:
        page.emulate_media(media="print")
        found = page.evaluate(
            "[...document.querySelectorAll('thead, caption')].map(head => getComputedStyle(head).breakAfter)"
        )
    assert set(found) == {"avoid"}


@needs_chromium
def test_failed_turns_are_filtered(browser: Browser, folder: Path) -> None:
    with opened(browser, folder / "report.html") as page:
        turns = page.locator(".t")
        kind = turns.first.get_attribute("data-kind")
        page.locator("select[name=kind]").select_option(kind)
        assert page.locator(f".t:visible[data-kind={kind}]").count() == page.locator(".t:visible").count()
        assert 0 < page.locator(".t:visible").count() < turns.count()
        page.locator("select[name=kind]").select_option("")
        word = turns.last.get_attribute("id") or ""
        page.locator("input[name=text]").fill(word)
        assert page.locator(".t:visible").count() == page.locator(".t", has_text=word).count() == 1
        assert page.locator("#shown").inner_text() == f"1 of {turns.count()} shown"
        page.get_by_role("button", name="Open all shown").click()
        assert page.locator(".t[open]").count() == 1


@needs_chromium
def test_the_keyboard_reaches_the_content_first(browser: Browser, folder: Path) -> None:
    with opened(browser, folder / "report.html") as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"


@needs_chromium
def test_a_link_to_a_failed_turn_opens_it(browser: Browser, hostile: Path) -> None:
    with opened(browser, hostile) as page:
        page.evaluate("location.hash = encodeURIComponent('x\"><b>#0')")
        page.wait_for_selector(".t[open]")
