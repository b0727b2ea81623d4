"""Reviewing in the workbench: forms that work without a script, keys that work without a mouse."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from starlette.testclient import TestClient

from eval_pipeline.core.ids import text_hash
from eval_pipeline.providers import registry
from eval_pipeline.suites.reviews.files import add_review, read_reviews
from eval_pipeline.suites.reviews.queues import Queue, read_queues
from eval_pipeline.suites.reviews.review import Review, current
from eval_pipeline.view.page import Bench
from eval_pipeline.view.published import StoreView
from eval_pipeline.view.serving import application
from eval_pipeline.web.guard import Door, token_of
from eval_pipeline_tests.chains import ran_of_suite
from eval_pipeline_tests.reports.browser import chromium, picture
from eval_pipeline_tests.support import Lab, Puppet, case, number, surroundings
from eval_pipeline_tests.view.pages import PORT, Parts, is_harmless, served

SUITE = "harbour"
HARM = "<script>window.pwned = 1</script><img src=x onerror='window.pwned=2'>\u202e\x1b[31m"
CHAIN = ("model_comparisons", "trends", "gold_suspects", "reviews", "comparison_published")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """24 answers of one model version, every fourth wrong."""
    made = Lab.at(tmp_path_factory.mktemp("reviewed"))
    cases = [case(f"ship_{n:02}", (str(10 + n), 10.0 + n), (f"add({10 + n}, 7)", 17.0 + n)) for n in range(12)]
    with surroundings(made), pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry.PROVIDERS, "puppet", f"{Puppet.__module__}:Puppet")
        Puppet.reset()
        Puppet.answer = staticmethod(
            lambda call: number(-1) if call.turn_index and int(call.case_id[-1]) % 2 else call.gold.oracle()
        )
        made.suite(SUITE, cases)
        made.versions({"name": "puppet", "provider": "puppet"})
        made.evaluate(SUITE, publish=True)
        ran_of_suite(made.workspace(), SUITE, *CHAIN)
        Puppet.reset()
    return made


@pytest.fixture
def fresh(lab: Lab) -> Iterator[Lab]:
    """Without reviews."""
    yield lab
    for path in sorted((suite_folder(lab) / "reviews").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.fixture
def client(fresh: Lab) -> Iterator[TestClient]:
    """A browser without scripts, let in."""
    with Bench.of(fresh.home) as bench:
        own = {"origin": f"http://127.0.0.1:{PORT}"}
        door = Door(PORT, None, forms=True)
        yield TestClient(application(bench, door), base_url=own["origin"], headers=own, raise_server_exceptions=True)


def suite_folder(lab: Lab) -> Path:
    return lab.home.data / "suites" / SUITE


def reviews(lab: Lab) -> list[Review]:
    return current(read_reviews(suite_folder(lab)).reviews)


def queue_of(lab: Lab) -> Queue:
    (found,) = read_queues(suite_folder(lab))[0].values()
    return found


TURN = {"turn_id": f"{SUITE}/ship_01#1", "model_version": "puppet", "eval_date": "2026-03-01"}


def form_of(page: str) -> dict[str, str]:
    """The hidden fields of the form, as a browser would send them."""
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page)
    return dict(found)


def test_a_review_is_said_by_a_form_and_shown(client: TestClient, fresh: Lab) -> None:
    page = client.get(f"/suites/{SUITE}/review", params=TURN).text
    said = client.post(
        f"/suites/{SUITE}/review",
        data=form_of(page) | {"verdict": "wrong", "who": "ann", "tag": "made up", "note": HARM},
        follow_redirects=False,
    )
    assert said.status_code == 303
    assert "reviewer=ann" in said.headers["set-cookie"]
    assert "HttpOnly" in said.headers["set-cookie"]
    (review,) = reviews(fresh)
    assert (review.who, review.verdict, review.tag, review.note) == ("ann", "wrong", "made up", HARM)
    assert review.gold_hash is not None
    shown = client.get(said.headers["location"]).text
    assert "&lt;script&gt;window.pwned" in shown
    assert "<script>window" not in shown
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert "the metric" in shown
    left = client.get(f"/suites/{SUITE}/turns?model_version=puppet&eval_date=2026-03-01&only=unreviewed").text
    assert ("ship_01%231" in left, "ship_02%231" in left) == (False, True), "at once, not only once it is published"
    (blind, *_) = Parts(left).rows()
    for html in (left[left.index('<p role="status"') :], client.get(blind).text):
        assert not re.search(r"✓|✗|wrong_number|Not blind", html[: html.index("<footer")]), "a list to review is blind"
    asked = f"/suites/{SUITE}/turns?model_version=puppet&eval_date=2026-03-01&only=unreviewed&verdict=wrong"
    assert all("/turn?" in one for one in Parts(client.get(asked).text).rows()), "of one verdict it cannot be"
    is_harmless(shown)
    is_harmless(client.get(f"/suites/{SUITE}/reviews").text)


VERDICTS = re.compile(r"✓|✗|wrong_number|failure|metric|judge says|verdict", re.IGNORECASE)


def test_no_verdict_is_told_before_the_reviewers_own(client: TestClient, fresh: Lab) -> None:
    """By whatever way one comes: title, answer, results, neighbours; afterwards metric and answer's error are told."""
    for among in ({}, {"verdict": "wrong"}):
        page = client.get(f"/suites/{SUITE}/review", params=TURN | among).text
        seen = re.sub(r"<[^>]*>", " ", page[page.index("<title") : page.index("<footer")])
        assert VERDICTS.findall(re.sub(r"show all verdicts|Failure tag|before the verdict", "", seen)) == []
        assert page.count('name="verdict"') == 3
        assert "<kbd>1</kbd> right" in page[page.index("<footer") :]
    said = client.post(f"/suites/{SUITE}/review", data=form_of(page) | {"verdict": "right", "who": "ann"}).text
    assert re.search(r"You say <span[^>]*>✓ right</span>, the metric <span[^>]*>✗ wrong</span>", said)
    assert "verdict=wrong" in said, "the list is not left"


def test_who_has_not_said_anything_is_not_told_what_others_say(client: TestClient, fresh: Lab) -> None:
    page = client.get(f"/suites/{SUITE}/review", params=TURN).text
    data = form_of(page) | {"verdict": "wrong", "who": "ann", "note": "of ann"}
    client.post(f"/suites/{SUITE}/review", data=data)
    client.cookies.clear()
    client.cookies.set("reviewer", "bo")
    page = client.get(f"/suites/{SUITE}/review", params=TURN).text
    assert "of ann" not in page
    assert "Reviewed by 1; shown once you have said what you think." in page
    client.post(f"/suites/{SUITE}/review", data=data | {"who": "bo", "verdict": "right", "note": "of bo"})
    page = client.get(f"/suites/{SUITE}/review", params=TURN).text
    assert "of ann" in page
    assert "They are at odds." in page
    disputes = client.get(f"/suites/{SUITE}/disputes").text
    assert f"{SUITE}/ship_01#1" in disputes
    is_harmless(disputes)
    said = client.post(
        f"/suites/{SUITE}/review",
        data=data | {"back": "disputes", "who": "bo", "verdict": "wrong"},
        follow_redirects=False,
    )
    assert said.headers["location"] == f"/suites/{SUITE}/disputes"
    assert "Nobody is at odds." in client.get(said.headers["location"]).text


def test_a_queue_leads_from_answer_to_answer_and_ends(client: TestClient, fresh: Lab) -> None:
    drawn = client.post(f"/suites/{SUITE}/queues", data={"by": "disagreement", "size": "6", "seed": "1"})
    queue = queue_of(fresh)
    assert queue.id in drawn.text
    client.cookies.set("reviewer", "ann")
    at = client.get(f"/suites/{SUITE}/queue", params={"queue": queue.id})
    for number_of, item in enumerate(queue.items, start=1):
        assert item.turn_id.replace("#", "%23").replace("/", "%2F") in str(at.url)
        assert f"{number_of} of 6, {number_of - 1} reviewed by you" in at.text
        later = re.search(r'data-later [^>]*href="([^"]*)"', at.text)
        assert later and f"queue={queue.id}" in later[1], "the keys of the turn before and after stay in the queue"
        at = client.post(f"/suites/{SUITE}/review", data=form_of(at.text) | {"verdict": "right", "who": "ann"})
    assert "nothing is left for you" in at.text
    assert {review.queue for review in reviews(fresh)} == {queue.id}
    assert [review.probability for review in reviews(fresh)] == [queue.probability(item) for item in queue.items]
    updated = client.post(f"/suites/{SUITE}/figures", data={"now": "yes"})
    assert "No figure of" in updated.text and "fewer than 12 reviews bear no figure" in updated.text
    assert "as reviewers would say, <strong>" not in updated.text
    assert fresh.one("SELECT count(*) FROM reviews") == 6


@pytest.mark.always
def test_answers_of_a_queue_are_looked_for_with_one_query_an_evaluation_and_passed_over_if_gone(
    client: TestClient, fresh: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post(f"/suites/{SUITE}/queues", data={"by": "uniform", "size": "12", "seed": "1"})
    queue = queue_of(fresh)
    evaluations = {(item.model_version, item.eval_date) for item in queue.items}
    assert len(queue.items) == 12
    (path,) = (suite_folder(fresh) / "reviews" / "queues").iterdir()
    text = path.read_text()
    path.write_text(text.replace(queue.items[0].response_hash, text_hash("another response"), 1))
    assert "2 of 12" in client.get(f"/suites/{SUITE}/queue", params={"queue": queue.id}).text
    # Also where a store made anew has none of them any more.
    for item in queue.items:
        text = text.replace(item.response_hash, text_hash(f"not {item.response_hash}"))
    path.write_text(text)
    asked = []
    real = StoreView.rows

    def counted(self: StoreView, sql: str, values: Any = ()) -> Any:
        asked.extend([sql] if "sha256" in sql else [])
        return real(self, sql, values)

    monkeypatch.setattr(StoreView, "rows", counted)
    at = client.get(f"/suites/{SUITE}/queue", params={"queue": queue.id})
    assert f"done={queue.id}" in str(at.url)
    assert len(asked) == len(evaluations)


@pytest.mark.parametrize(
    ("changed", "status", "told"),
    [
        ({"verdict": "maybe"}, 400, "verdict: expected"),
        ({"verdict": ""}, 400, "verdict: expected"),
        ({"who": " "}, 400, "who: expected a text that says it, found none"),
        ({"gold_wrong": "yes", "correction": "{"}, 400, "the correction is no JSON"),
        ({"gold_wrong": "yes", "correction": '{"x": 1}'}, 400, "unknown field"),
        ({"correction": '{"answer": 1}'}, 400, "needs"),
        ({"turn_id": f"{SUITE}/none#0"}, 404, "the store has no such answer"),
        ({"eval_date": "yesterday"}, 400, "the form does not say which answer it is about"),
        ({"response_hash": "x"}, 400, "the form does not say which answer it is about"),
        ({"queue": "000000000000"}, 400, "no queue"),
    ],
)
def test_what_cannot_be_said_is_a_sentence(
    client: TestClient, fresh: Lab, changed: dict[str, str], status: int, told: str
) -> None:
    page = client.get(f"/suites/{SUITE}/review", params=TURN).text
    answer = client.post(f"/suites/{SUITE}/review", data=form_of(page) | {"verdict": "right", "who": "ann"} | changed)
    assert (answer.status_code, told in answer.text) == (status, True), answer.text
    assert reviews(fresh) == []


def test_a_page_of_another_address_or_without_the_token_says_nothing(client: TestClient, fresh: Lab, lab: Lab) -> None:
    data = form_of(client.get(f"/suites/{SUITE}/review", params=TURN).text) | {"verdict": "right", "who": "ann"}
    for origin in ("https://evil.example", "null"):
        answer = client.post(f"/suites/{SUITE}/review", data=data, headers={"origin": origin})
        assert answer.status_code == 403
    assert client.get(f"/suites/{SUITE}/figures", params=data).status_code == 404
    assert reviews(fresh) == []
    with Bench.of(lab.home) as bench:
        guarded = application(bench, Door(PORT, token_of(lab.home.ui_token), forms=True))
        client = TestClient(guarded, base_url=f"http://127.0.0.1:{PORT}")
        answer = client.post(f"/suites/{SUITE}/review", data={}, headers={"origin": f"http://127.0.0.1:{PORT}"})
        assert answer.status_code == 403


def test_a_suite_that_cannot_be_written_is_a_sentence(client: TestClient, fresh: Lab) -> None:
    (suite_folder(fresh) / "reviews").mkdir(exist_ok=True)
    page = client.get(f"/suites/{SUITE}/review", params=TURN).text
    (suite_folder(fresh) / "reviews").rmdir()
    (suite_folder(fresh) / "reviews").write_text("a file")
    try:
        answer = client.post(f"/suites/{SUITE}/review", data=form_of(page) | {"verdict": "right", "who": "ann"})
        assert answer.status_code == 400
        assert "has to be writable" in answer.text
    finally:
        (suite_folder(fresh) / "reviews").unlink()


def shown(page: Page, text: str) -> None:
    """Waits for a page with that text, and for its keys."""
    expect(page.get_by_text(text)).to_be_visible()
    page.wait_for_load_state()


def tab_to(page: Page, what: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim() || document.activeElement.name") == what:
            return
    raise AssertionError(f"no {what} by Tab")


@pytest.mark.services("browser", "ui")
def test_twenty_turns_are_reviewed_by_keyboard_only(fresh: Lab) -> None:
    with served(fresh.home, USER="ann", LOGNAME="ann") as url, chromium() as browser:
        page = browser.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.goto(url)
        tab_to(page, "Reviews")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Reviews of {SUITE}")
        tab_to(page, "size")
        page.keyboard.type("20")
        tab_to(page, "Draw a queue")
        page.keyboard.press("Enter")
        expect(page.locator("tr[data-row]")).to_have_count(1)
        page.wait_for_load_state()
        queue = queue_of(fresh)
        picture(page, "reviews-queues", full_page=True)
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        for place in range(20):
            shown(page, f"{place + 1} of 20, {place} reviewed by you")
            assert page.locator(".verdict").count() == 0
            if place == 3:
                page.keyboard.press("g")
                page.keyboard.press("t")
                page.keyboard.type("made up 1")
                page.keyboard.press("Escape")
                page.keyboard.press("o")
                page.keyboard.type(HARM[:60])
                page.keyboard.press("Enter")  # in a field it says no verdict
                page.wait_for_timeout(300)
                shown(page, "4 of 20, 3 reviewed by you")
                page.keyboard.press("Escape")
                picture(page, "reviews-form", full_page=True)
            if place == 5:  # left for later, and come back to
                page.keyboard.press("n")
                shown(page, "7 of 20, 5 reviewed by you")
                page.keyboard.press("b")
                shown(page, "6 of 20, 5 reviewed by you")
            page.keyboard.press("123"[place % 3])
        expect(page.get_by_role("status")).to_contain_text("nothing is left for you")
        picture(page, "reviews-done", full_page=True)
        assert page.evaluate("window.pwned") is None
        assert said == []
    found = {review.answer: review for review in reviews(fresh)}
    assert len(found) == 20
    verdicts = [found[item.answer].verdict for item in queue.items]
    assert verdicts == [("right", "wrong", "cannot_tell")[place % 3] for place in range(20)]
    fourth = found[queue.items[3].answer]
    assert (fourth.gold_wrong, fourth.tag, fourth.note) == (True, "made up 1", HARM[:60])


@pytest.mark.services("browser", "ui")
def test_pages_are_looked_at_in_light_dark_and_on_a_phone(fresh: Lab) -> None:
    """Nothing is wider than the screen, with texts that mean harm on the page."""
    query = f"SELECT left(sha256(response), 32) FROM attempts WHERE turn_id = '{TURN['turn_id']}' ORDER BY number DESC"
    answer = {**TURN, "sample": 0, "response_hash": fresh.one(f"{query} LIMIT 1")}
    add_review(suite_folder(fresh), Review.new(**answer, who="bo", verdict="right", note=HARM + "w" * 3000))
    add_review(suite_folder(fresh), Review.new(**answer, who="ann", verdict="wrong", tag=HARM[:50]))
    looks = {"light": (1280, "light"), "dark": (1280, "dark"), "phone": (390, "dark")}
    with served(fresh.home, USER="ann", LOGNAME="ann") as url, chromium() as browser:
        for name, (width, scheme) in looks.items():
            page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
            page.goto(url)
            for part in ("reviews", "disputes", "turn", "review"):
                query = "&".join(f"{key}={value.replace('#', '%23')}" for key, value in TURN.items())
                page.goto(f"{url.partition('/?')[0]}/suites/{SUITE}/{part}?{query}")
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, part)
                assert page.evaluate("window.pwned") is None
                if part == "review":
                    expect(page.get_by_role("button", name="Right")).to_be_in_viewport()
                picture(page, f"reviews-{part}-{name}", full_page=True)
            page.close()
