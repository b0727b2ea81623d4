"""Side by side and exported folders as people use them: keys and clicks counted, file://, the back button, three looks.

Screenshots are kept in `EVAL_SCREENSHOTS`, if that is set.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pytest
from playwright.sync_api import Browser, Page, expect

from eval_pipeline.core.home import Home
from eval_pipeline.tracks.shown.cards import TimelineCard, TimelineStep
from eval_pipeline.view.drawing import render, static_file
from eval_pipeline.view.exporting.folder import export_evaluation
from eval_pipeline_tests.browser import test_view
from eval_pipeline_tests.browser.test_view import DESK, LOOKS, entered, serious, sizes
from eval_pipeline_tests.reports.browser import chromium, picture
from eval_pipeline_tests.support import built_once
from eval_pipeline_tests.view.homes import FALLING, FIRST, HOSTILE, HOSTILE_TEXTS, LAST, STEADY, build, home_in
from eval_pipeline_tests.view.pages import served
from eval_pipeline_tests.view.test_view_questions import STATEMENTS

pytestmark = pytest.mark.services("browser", "ui")
axe = test_view.axe
NIGHTS = f"/suites/harbour/compare?versions={FALLING},{FALLING}&eval_dates={FIRST},{LAST}"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address that the command prints, and that of a folder on disk."""
    home = home_in(built_once(tmp_path_factory, "view", build))
    folder = tmp_path_factory.mktemp("handed on") / "a folder #1"
    export_evaluation(home, "harbour", HOSTILE, None, folder)
    with served(home) as opened:
        yield opened, (folder / "index.html").as_uri()


@pytest.fixture(scope="module")
def of_two_prompts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a workbench of a store in which the two versions have another prompt, and else the same."""
    with of_changed_store(
        tmp_path_factory, f"UPDATE runs SET prompt = 'plan-2' WHERE model_version = '{STEADY}'"
    ) as at:
        yield at


@pytest.fixture(scope="module")
def of_samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a workbench of a store with samples, and calls that failed."""
    with of_changed_store(tmp_path_factory, *STATEMENTS[2:]) as at:
        yield at


@contextmanager
def of_changed_store(tmp_path_factory: pytest.TempPathFactory, *statements: str) -> Iterator[str]:
    home, folder = home_in(built_once(tmp_path_factory, "view", build)), tmp_path_factory.mktemp("changed")
    with duckdb.connect(shutil.copy(home.store, folder / "eval.duckdb")) as connection:
        for statement in statements:
            connection.execute(statement)
    with served(Home(folder, home.data)) as opened:
        yield opened


@pytest.fixture(scope="module")
def browser(
    of_two_prompts: str, of_samples: str, places: tuple[str, str]
) -> Iterator[Browser]:  # no home can be made while playwright runs
    with chromium() as found:
        yield found


class Counted:
    """Keys and clicks of somebody, counted."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def press(self, key: str) -> None:
        self.count += 1
        self.page.wait_for_load_state()  # nobody presses a key on a page that is not there yet
        self.page.keyboard.press(key)

    def click(self, text: str) -> None:
        self.count += 1
        self.page.get_by_role("link", name=text, exact=True).first.click()

    def check(self, label: str) -> None:
        self.count += 1
        self.page.get_by_label(label).click()


def arrived(page: Page, turn: str, version: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text(turn)
    expect(page.get_by_role("navigation", name="Pages")).to_contain_text(version)


def test_from_home_to_the_third_regression_in_four_keys_or_clicks(browser: Browser, places: tuple[str, str]) -> None:
    """Of any model version against any other: two are chosen, then side by side, then the third row."""
    context, page, url, complaints = entered(browser, places[0], viewport=DESK)
    by_clicks = Counted(page)
    by_clicks.check(f"Choose {STEADY}")
    by_clicks.check(f"Choose {FALLING}")
    by_clicks.press("c")
    expect(page.get_by_role("heading", level=1)).to_have_text("Side by side on harbour")
    expect(page.locator(".sides")).to_contain_text(f"{STEADY}, {FIRST}")
    by_clicks.press("3")
    arrived(page, "ship_02 #1 ✗ wrong", FALLING)
    assert by_clicks.count <= 4
    by_clicks.press("j")
    arrived(page, "ship_03 #1 ✗ wrong", FALLING)
    by_clicks.press("k")
    arrived(page, "ship_02 #1 ✗ wrong", FALLING)
    by_clicks.press("u")
    expect(page.locator("article").first).to_contain_text("ship_02 #1")

    page.goto(url)
    newest = Counted(page)
    newest.press("c")
    expect(page).to_have_url(f"{url}{NIGHTS}")  # the loss, and not the two that are the newest
    expect(page.locator("article").nth(2)).to_contain_text("Only B wrong")
    newest.press("3")
    expect(page.get_by_role("heading", level=1)).to_contain_text("✗ wrong")
    assert newest.count <= 4

    page.goto(url)
    lost = Counted(page)
    lost.click("−39 points on 2026-03-02 against 2026-03-01")
    expect(page.get_by_role("heading", level=1)).to_have_text("Side by side on harbour")
    lost.press("3")
    arrived(page, "ship_02 #1 ✗ wrong", f"{FALLING}, {LAST}")
    assert lost.count <= 4
    lost.press("u")
    expect(page).to_have_url(f"{url}{NIGHTS}")
    page.keyboard.press("u")
    expect(page).to_have_url(f"{url}/")
    context.close()
    assert complaints == []


QUESTIONS = {
    f"what broke since {FIRST}": ("", "12 of 31 turns"),
    f"which failure mode grew since {FIRST}": ("#how-wrong", "12 of 31 turns"),
    "dearest wrong answers": ("", "12 of 31 turns, by tokens"),
    f"what {STEADY} gets right and this one wrong, by tag": ("#by-tag", "6 of 31 turns"),
    "what nobody has reviewed": ("", "31 of 31 turns"),
}


def test_what_people_ask_is_at_most_three_clicks_from_home(browser: Browser, places: tuple[str, str]) -> None:
    """Each leads to the turns that answer it, by a table where there is one, and on to a turn."""
    context, page, url, complaints = entered(browser, places[0], viewport=DESK)
    for words, (section, found) in QUESTIONS.items():
        asked(page, url, words, section, found)
    context.close()
    assert complaints == []


def test_what_a_prompt_changed_is_asked_like_the_others(browser: Browser, of_two_prompts: str) -> None:
    context, page, url, complaints = entered(browser, of_two_prompts, viewport=DESK)
    asked(page, url, "what its prompt changed", "", "31 of 31 turns")
    page.go_back()
    expect(page.locator(".sides")).to_contain_text(f"{STEADY}, {FIRST}")
    expect(page.locator(".sides")).to_contain_text(f"{FALLING}, {LAST}")
    context.close()
    assert complaints == []


def test_what_is_flaky_or_unreadable_is_asked_like_the_others(browser: Browser, of_samples: str) -> None:
    context, page, url, complaints = entered(browser, of_samples, viewport=DESK)
    asked(page, url, "flaky turns", "", "2 of 33 turns")
    asked(page, url, "what could not be read", "", "2 of 33 turns")
    context.close()
    assert complaints == []


def asked(page: Page, url: str, words: str, section: str, found: str) -> None:
    """Asks a question on the first page, and goes on to the first turn of what is found."""
    page.goto(url)
    user = Counted(page)
    user.click(words)
    if section:
        expect(page.locator(section)).to_be_in_viewport()
        user.count += 1
        page.locator(
            f"section[aria-labelledby={section[1:]}] tbody .main a, {section} ~ .scroll tbody th a"
        ).first.click()
    expect(page.get_by_role("status")).to_contain_text(found)
    turns = page.locator("a[data-open]")
    if turns.count():
        user.count += 1
        turns.first.click()
        expect(page.get_by_role("navigation", name="Pages")).to_contain_text("harbour")
    assert user.count <= 3, words


def test_keys_choose_on_the_first_page(browser: Browser, places: tuple[str, str]) -> None:
    context, page, *_ = entered(browser, places[0], viewport=DESK)
    for key in "jxjjxc":
        page.keyboard.press(key)
    expect(page.locator(".sides")).to_contain_text(f"{STEADY}, {FIRST}")
    expect(page.locator(".sides")).to_contain_text(f"{FALLING}, {LAST}")
    context.close()


def test_the_filter_of_side_by_side_is_its_address(browser: Browser, places: tuple[str, str]) -> None:
    context, page, url, complaints = entered(browser, places[0], viewport=DESK)
    page.goto(url + NIGHTS)
    page.get_by_role("link", name="Only B wrong").click()
    page.locator("select[name=tag]").select_option("odd")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("status")).to_contain_text("6 of 31 turns")
    address = page.url
    page.get_by_role("link", name="All right").click()
    page.go_back()
    expect(page.get_by_role("status")).to_contain_text("6 of 31 turns")
    other = context.new_page()
    other.goto(address)
    expect(other.get_by_role("status")).to_contain_text("6 of 31 turns")
    expect(other.locator("select[name=tag]")).to_have_value("odd")
    other.get_by_text("Other evaluations").click()
    other.locator("select[name=side]").nth(2).select_option(f"{HOSTILE},{LAST},")
    other.get_by_role("button", name="Side by side").click()
    expect(other.locator(".sides")).to_contain_text(HOSTILE)
    context.close()
    assert complaints == []


def test_a_folder_opens_from_disk_and_is_filtered(browser: Browser, places: tuple[str, str]) -> None:
    context = browser.new_context(viewport=DESK)
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda one: None if one.url.startswith(("file:", "data:")) else complaints.append(one.url))
    page.goto(places[1])
    found, rows = page.get_by_role("status"), page.locator("tbody tr")
    expect(found).to_have_text("31 of 31 turns")
    page.get_by_label("Outcome").select_option("right")
    expect(found).to_have_text("12 of 31 turns")
    page.get_by_label("Tag").select_option("odd")
    expect(found).to_have_text("6 of 31 turns")
    page.get_by_label("Text in").fill("SHIP_03")
    expect(found).to_have_text("1 of 31 turns")
    expect(rows).to_contain_text("ship_03 #0")
    address = page.url
    rows.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("ship_03 #0 ✓ right")
    page.get_by_role("link", name="next →").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("ship_03 #1 ✗ wrong")
    page.go_back()
    page.go_back()
    expect(found).to_have_text("1 of 31 turns")
    page.go_back()
    expect(found).to_have_text("12 of 31 turns")
    other = context.new_page()
    other.goto(address)
    expect(other.get_by_role("status")).to_have_text("1 of 31 turns")
    expect(other.get_by_label("Tag")).to_have_value("odd")
    other.goto(f"{places[1]}#q=onerror")
    other.get_by_label("Tag").select_option(HOSTILE_TEXTS[1])
    expect(other.locator("tbody tr").first).to_contain_text("<script>window.pwned = 1")
    other.set_viewport_size({"width": 390, "height": 844})
    assert other.evaluate("(list => list.scrollWidth - list.clientWidth)(document.querySelector('.scroll'))") == 0
    for turn in range(other.locator("tbody tr").count()):
        other.locator("tbody tr").nth(turn).get_by_role("link").click()
        expect(other.get_by_role("heading", level=1)).to_contain_text("#")
        assert other.evaluate("[window.pwned, getComputedStyle(document.querySelector('main')).display]") == [
            None,
            "block",
        ]
        other.go_back()
    context.close()
    assert complaints == []


def test_a_folder_without_a_script_says_so(browser: Browser, places: tuple[str, str]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(places[1])
    expect(page.get_by_text("The list needs its script")).to_be_visible()
    context.close()


@pytest.mark.parametrize("look", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, places: tuple[str, str], axe: str, look: str) -> None:
    context, page, url, _ = entered(browser, places[0], **LOOKS[look])
    for address in (url + NIGHTS, places[1]):
        page.goto(address)
        assert serious(page, axe) == []
    context.close()


_CUT = """[...document.querySelectorAll('section > .scroll, .pictures > *')]
    .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.ariaLabel + one.scrollWidth)"""
"""Tables and pictures of which a part is off the screen."""


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_is_wider_than_the_screen(browser: Browser, places: tuple[str, str], look: str) -> None:
    context, page, url, complaints = entered(browser, places[0], **LOOKS[look])
    three = f"{url}/suites/harbour/compare?versions={STEADY},{FALLING},{HOSTILE}"
    found = {"side-by-side": url + NIGHTS, "three": three}
    pages = {**found, "exported": places[1]}
    for name, address in pages.items():
        own = page if name in found else context.new_page()
        own.goto(address)
        own.evaluate("document.querySelectorAll('article details').forEach((one) => { one.open = true; })")
        for size in sizes(own, look):
            picture(own, f"{name}-{look}-{size}")
            assert own.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, size)
            assert own.evaluate(_CUT) == [], (name, size)
        assert own.evaluate("window.pwned") is None
    context.close()
    assert complaints == []


def test_the_steps_of_a_timeline_are_chosen_without_a_script(browser: Browser) -> None:
    made = [("sql", ""), ("shell", "value_error"), *((f"tool {n}", "") for n in range(9)), ("sql", "value_error")]
    steps = [TimelineStep(place, by, "", f"result {place}", error) for place, (by, error) in enumerate(made)]
    card = render("parts/cards.html.j2", its={"cards": [TimelineCard("T", steps)], "missing": ""})
    page = browser.new_context(java_script_enabled=False).new_page()
    page.set_content(f"<style>{static_file('style.css').decode()}</style>{card}")
    for label, expected in {"failed 2": [1, 11], "sql 2": [0, 11], "tool 8 1": [10], "all 12": list(range(12))}.items():
        page.get_by_label(label).check()
        assert [step for step in range(12) if page.locator(f"#step-{step}").is_visible()] == expected
