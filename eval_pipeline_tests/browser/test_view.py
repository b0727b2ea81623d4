"""The workbench as people use it: a real server, a real browser, keys, links, the dark, a phone, and axe.

Screenshots are kept in `EVAL_SCREENSHOTS`, if that is set.
"""

import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from eval_pipeline.core.home import Home
from eval_pipeline.core.system.processes import worldwide_mark
from eval_pipeline.workspace.watching.status import Status
from eval_pipeline.workspace.watching.watch import forget, wish_path, write_status
from eval_pipeline_tests.reports.browser import chromium, picture
from eval_pipeline_tests.support import built_once
from eval_pipeline_tests.view.homes import FALLING, HOSTILE, HOSTILE_CASE, HOSTILE_TEXTS, STEADY, build, home_in
from eval_pipeline_tests.view.pages import served, turn_of, turns_of

pytestmark = pytest.mark.services("browser", "ui")
DESK, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
LOOKS = {
    "light": {"viewport": DESK, "color_scheme": "light"},
    "dark": {"viewport": DESK, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light", "has_touch": True},
}
SIZES = {"desk": DESK, "tablet": {"width": 1024, "height": 768}, "phone": PHONE}
"""Sizes to which a page is changed in the light; the others have their own."""
PAGES = {
    "home": "/",
    "turns": turns_of(FALLING, verdict="wrong", sort="question", show=["tags"]),
    "turn": turn_of("harbour/ship_03#1", STEADY, "2026-03-01"),
    "hostile": turn_of(f"harbour/{HOSTILE_CASE}#2", HOSTILE),
    "review": turn_of("harbour/ship_03#1", STEADY, "2026-03-01").replace("/turn?", "/review?"),
    "reviews": "/suites/harbour/reviews",
    "disputes": "/suites/harbour/disputes",
    "runs": "/runs",
    "problem": "/nowhere",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return home_in(built_once(tmp_path_factory, "view", build))


@pytest.fixture(scope="module")
def opened(home: Home) -> Iterator[str]:
    """The address that the command prints."""
    with served(home) as address:
        yield address


@pytest.fixture(scope="module")
def browser(opened: str) -> Iterator[Browser]:  # `opened` first: no home can be made while playwright runs
    with chromium() as found:
        yield found


def entered(browser: Browser, opened: str, **look: object) -> tuple[BrowserContext, Page, str, list[str]]:
    """A page behind the token, its address without it, and what the browser complains of."""
    context = browser.new_context(**look)  # type: ignore[arg-type]
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith((url, "data:")) else complaints.append(request.url)
    )
    url = opened.partition("/?")[0]
    page.goto(opened)
    assert page.url == f"{url}/", "the token stays in no history"
    return context, page, url, complaints


def test_from_home_to_the_third_wrong_turn_and_on_by_keys(browser: Browser, opened: str) -> None:
    context, page, url, complaints = entered(browser, opened, viewport=DESK)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{FALLING} on harbour")
    page.wait_for_load_state()  # what is shown before that does not listen to keys yet
    page.keyboard.press("/")
    page.keyboard.type("ship_")
    page.get_by_label("Verdict").select_option("wrong")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("status")).to_contain_text("12 of 31 turns")
    page.wait_for_load_state()
    for _ in range(3):
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("ship_02 #1")
    page.wait_for_load_state()
    page.keyboard.press("j")
    expect(page.get_by_role("heading", level=1)).to_contain_text("ship_03 #1")
    page.wait_for_load_state()
    page.keyboard.press("k")
    expect(page.get_by_role("heading", level=1)).to_contain_text("ship_02 #1")
    page.wait_for_load_state()
    page.keyboard.press("u")
    expect(page.get_by_role("status")).to_contain_text("12 of 31 turns")
    page.wait_for_load_state()
    page.keyboard.press("u")
    expect(page).to_have_url(f"{url}/")
    context.close()
    assert complaints == []


def test_a_field_that_is_folded_away_is_gone_to_by_its_key(browser: Browser, opened: str) -> None:
    context, page, url, complaints = entered(browser, opened, viewport=DESK)
    page.goto(f"{url}{turn_of('harbour/ship_03#1', STEADY, '2026-03-01')}")
    page.keyboard.press("r")
    expect(page.get_by_role("button", name="Cannot tell")).to_be_in_viewport()
    page.wait_for_load_state()
    page.keyboard.press("c")
    page.keyboard.type('{"o": 1}')
    expect(page.locator("[name=correction]")).to_have_value('{"o": 1}')
    expect(page.locator("[name=note]")).to_have_value("")
    context.close()
    assert complaints == []


def test_an_address_is_the_filter_and_the_back_button_knows_it(browser: Browser, opened: str) -> None:
    context, page, url, complaints = entered(browser, opened, viewport=DESK)
    page.goto(f"{url}{turns_of(FALLING)}")
    page.get_by_label("Verdict").select_option("wrong")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("columnheader", name="question").get_by_role("link").click()
    page.get_by_role("columnheader", name="question").get_by_role("link").click()
    header = page.get_by_role("columnheader", name="question")
    expect(header).to_have_attribute("aria-sort", "descending")
    rows = page.locator("a[data-open]")
    expect(rows.first).to_have_text("ship_11 #1")
    address = page.url
    rows.nth(2).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("ship_09 #1")
    page.go_back()
    expect(rows.first).to_have_text("ship_11 #1")
    page.go_back()
    expect(header).to_have_attribute("aria-sort", "ascending")
    other = context.new_page()
    other.goto(address)
    expect(other.get_by_label("Verdict")).to_have_value("wrong")
    expect(other.locator("a[data-open]").first).to_have_text("ship_11 #1")
    other.get_by_text("The SQL of these turns").click()
    expect(other.locator("#sql")).to_contain_text("NOT r.correct")
    with other.expect_download() as download:
        other.get_by_role("link", name="CSV").click()
    assert len(Path(download.value.path()).read_text().splitlines()) == 13
    context.close()
    assert complaints == []


def test_it_works_without_a_script(browser: Browser, opened: str) -> None:
    context, page, *_ = entered(browser, opened, viewport=DESK, java_script_enabled=False)
    page.get_by_role("link", name=FALLING, exact=True).click()
    page.get_by_label("Text in question").fill("ship_04")
    page.get_by_text("Conditions on columns and metrics").click()
    page.locator("select[name=column]").first.select_option("turn_index")
    page.get_by_label("Value", exact=True).first.fill("1")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="ship_04 #1").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("ship_04 #1 ✗ wrong")
    context.close()


def test_hostile_answers_run_nothing_and_break_no_page(browser: Browser, opened: str) -> None:
    context, page, url, complaints = entered(browser, opened, viewport=PHONE)
    addresses = [turn_of(f"harbour/{HOSTILE_CASE}#{index}", HOSTILE) for index in range(len(HOSTILE_TEXTS))]
    for address in (*addresses, turns_of(HOSTILE, show=["tags", "case_id"])):
        page.goto(f"{url}{address}")
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address
        expect(page.locator("footer")).to_be_visible()
    context.close()
    assert complaints == []


def test_runs_are_kept_up_to_date_without_loading_the_page_again(browser: Browser, opened: str, home: Home) -> None:
    """Who is about to press a button presses that one; where no answer comes, the page says since when."""
    context, page, url, complaints = entered(browser, opened, viewport=DESK)
    runs = [Status(name, "run", worldwide_mark(), time.time(), step="asking", total=9) for name in ("one", "two")]
    try:
        write_status(home, replace(runs[1], place=["bench", "two", "2026-01-02"], done=1))
        page.goto(f"{url}/runs")
        page.evaluate("window.loaded = 'once'")
        stop = page.locator("#two").get_by_role("button", name="Stop")
        stop.focus()
        write_status(home, replace(runs[1], place=["bench", "two", "2026-01-02"], done=5))
        write_status(home, replace(runs[0], began=time.time() + 1, place=["bench", "one", "2026-01-02"]))
        expect(page.locator("#two strong")).to_have_text("5 of 9 turns")
        expect(page.locator("main .card h2").first).to_contain_text("bench · one")
        expect(stop).to_be_focused()
        stop.press("Enter")
        page.wait_for_load_state()
        assert (wish_path(home, "two").exists(), wish_path(home, "one").exists()) == (True, False)
        expect(page.locator("#two")).to_contain_text("stopping")
        page.evaluate("window.loaded = 'twice'")
        page.route("**/runs", lambda _: None)  # a server that hangs
        expect(page.locator("#stale")).to_contain_text("has not answered since", timeout=15_000)
        page.unroute("**/runs")
        expect(page.locator("#stale")).to_have_count(0, timeout=15_000)
        forget(home, "one")
        forget(home, "two")
        expect(page.locator("#one, #two")).to_have_count(0)
        assert page.evaluate("window.loaded") == "twice"
    finally:
        forget(home, "one")
        forget(home, "two")
    context.close()
    assert complaints == []


def sizes(page: Page, look: str) -> Iterator[str]:
    """Changes a page that is loaded once to each size."""
    for name, size in SIZES.items():
        if look == "light" or size == LOOKS[look]["viewport"]:
            page.set_viewport_size(size)  # type: ignore[arg-type]
            yield name
    page.set_viewport_size(LOOKS[look]["viewport"])  # type: ignore[arg-type]


@pytest.mark.parametrize("look", LOOKS)
def test_how_it_looks(browser: Browser, opened: str, look: str) -> None:
    context, page, url, _ = entered(browser, opened, **LOOKS[look])
    for name, address in PAGES.items():
        page.goto(f"{url}{address}")
        for size in sizes(page, look):
            own = f"{name}-{look}-{size}"
            picture(page, f"view-{own}", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), own
            if name == "home":
                drawn = page.locator("figure svg").first.bounding_box()
                assert drawn is not None and drawn["y"] + drawn["height"] / 2 < SIZES[size]["height"], own
    page.goto(f"{url}/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_in_viewport()
    context.close()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, from npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm, which axe-core comes from, is not installed")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
    done = subprocess.run([*command, "axe-core@4"], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot install axe-core: {done.stderr[-200:]}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


def serious(page: Page, axe: str) -> list[tuple[str, list[str]]]:
    """What axe finds of a page with all its details, by rule, with the elements."""
    page.evaluate("for (const found of document.querySelectorAll('details')) found.open = true")
    page.evaluate(axe)
    found = page.evaluate("axe.run({resultTypes: ['violations']})")  # of what passes, one element a rule
    assert len(found["passes"]) > 10
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
    ]


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_serious(browser: Browser, opened: str, axe: str, look: str) -> None:
    context, page, url, _ = entered(browser, opened, **LOOKS[look])
    for name, address in PAGES.items():
        page.goto(f"{url}{address}")
        assert serious(page, axe) == [], name
    context.close()
