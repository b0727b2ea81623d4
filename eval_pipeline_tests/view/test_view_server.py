"""Who is let in, what a page may load, and the store as it changes while people look."""

import asyncio
import os
import shutil
import signal
import threading
from pathlib import Path

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from uvicorn.server import ServerState

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.store.published.query import connect_read_only
from eval_pipeline.view.page import Bench, Page, Visit
from eval_pipeline.view.pages import PAGES
from eval_pipeline.view.published import PublishedStore
from eval_pipeline.view.serving import _form, application
from eval_pipeline.web.guard import Door
from eval_pipeline.web.patience import Impatient
from eval_pipeline_tests.view.homes import FALLING, STEADY
from eval_pipeline_tests.view.pages import PORT, Parts, let_in, serving, turn_of, turns_of

URL = f"http://127.0.0.1:{PORT}"
ADDRESSES = ("/", turns_of(FALLING), turn_of("harbour/ship_00#0", FALLING), "/static/style.css", "/nowhere")


def noted(visit: Visit) -> Response:
    return PlainTextResponse(repr(sorted(visit.form.items())))


@pytest.fixture
def guarded(bench: Bench) -> TestClient:
    door = Door(PORT, "secret", forms=True, command="view")
    pages = (*PAGES, Page("/noted", noted, ("POST",)))
    return TestClient(application(bench, door, pages), base_url=URL, follow_redirects=False)


@pytest.mark.parametrize("address", ADDRESSES)
def test_nobody_is_shown_anything_without_the_token(guarded: TestClient, address: str) -> None:
    answer = guarded.get(address)
    assert answer.status_code == 403
    assert "`eval-pipeline view` has printed" in answer.text
    assert guarded.get(address, headers={"Authorization": "Bearer secret"}).status_code in {200, 404}
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert guarded.get(address, headers={"Authorization": "Bearer secret", **headers}).status_code == 403


def test_the_printed_address_lets_in(guarded: TestClient) -> None:
    answer = guarded.get("/?token=secret")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert answer.headers["set-cookie"] == f"eval_pipeline_{PORT}=secret; Path=/; HttpOnly; SameSite=Lax"


def test_only_pages_of_ours_send_forms(guarded: TestClient) -> None:
    ours = {"Authorization": "Bearer secret", "Origin": URL, "Sec-Fetch-Site": "same-origin"}
    answer = guarded.post("/noted", data={"a": ["1", "2"], "b": ""}, headers=ours)
    assert answer.text == "[('a', ['1', '2']), ('b', [''])]"
    assert guarded.post("/noted", json={"a": ["1"], "b": 2}, headers=ours).text == "[('a', ['1']), ('b', ['2'])]"
    assert guarded.post("/noted", content="[1", headers={**ours, "Content-Type": "application/json"}).text == "[]"
    for headers, status in (
        ({"Authorization": "Bearer secret"}, 403),
        ({"Authorization": "Bearer secret", "Origin": "null"}, 403),
        ({"Authorization": "Bearer secret", "Origin": "http://127.0.0.1:9"}, 403),
        ({"Origin": URL}, 403),
    ):
        assert guarded.post("/noted", data={"a": "1"}, headers=headers).status_code == status
    assert guarded.post("/noted", content=b"a=1", headers={**ours, "Content-Type": "text/plain"}).status_code == 415
    assert guarded.post("/", data={"a": "1"}, headers=ours).status_code in {404, 405}


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_may_load_nothing_but_ours_and_run_nothing_within(client: TestClient, address: str) -> None:
    headers = client.get(address).headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert (policy["base-uri"], policy["frame-ancestors"]) == ("'none'", "'self'")
    assert headers["x-content-type-options"] == "nosniff"


def test_a_fault_is_told_without_its_words(bench: Bench) -> None:
    def fault(visit: Visit) -> Response:
        raise RuntimeError("<secret>")

    app = application(bench, Door(PORT, None), (Page("/", fault),))
    answer = TestClient(app, base_url=URL, raise_server_exceptions=False).get("/")
    assert answer.status_code == 500
    assert "RuntimeError (a fault of eval-pipeline" in answer.text
    assert "secret" not in answer.text


def test_every_page_has_its_landmarks_and_one_heading(client: TestClient) -> None:
    for address in ("/", turns_of(FALLING), turn_of("harbour/ship_00#0", STEADY, "2026-03-01"), "/nowhere"):
        found = Parts(client.get(address).text).elements
        tags = [tag for tag, _ in found]
        assert [tags.count(tag) for tag in ("main", "h1", "header", "footer")] == [1, 1, 1, 1], address
        ids = [attributes["id"] for _, attributes in found if "id" in attributes]
        assert len(ids) == len(set(ids))
        assert all("scope" in attributes for tag, attributes in found if tag == "th")
        assert ("a", {"class": "skip", "href": "#content"}) in found


@pytest.fixture
def other(home: Home, tmp_path: Path) -> Path:
    """A copy of the store, to be replaced."""
    return Path(shutil.copy(home.store, tmp_path / "eval.duckdb"))


def replaced(store: Path, home: Home, number: int) -> None:
    """Puts another store in the place of one, as publishing does."""
    aside = store.with_name(f"aside-{number}")
    shutil.copy(home.store, aside)
    os.replace(aside, store)


def test_a_request_keeps_the_store_that_it_began_with(other: Path, home: Home) -> None:
    published = PublishedStore(other)
    with published.look() as before:
        first = published._state
        assert before.remembered("x", lambda: 1) == 1
        replaced(other, home, 0)
        with published.look() as after:
            assert published._state is not first
            assert after.remembered("x", lambda: 2) == 2, "what was remembered is of the old state"
        assert before.rows("SELECT count(*) AS n FROM turn_results")[0]["n"] == 124
    with pytest.raises(Exception, match="closed"):
        first.connection.execute("SELECT 1")
    with published.look() as same, published.look() as again:
        assert same._state is again._state
    published.close()


def test_work_that_takes_much_memory_gets_it_from_the_store(other: Path) -> None:
    published = PublishedStore(other)
    with published.look() as reading:
        first = reading._state
        with published.look() as working:
            working.remembered("rows", lambda: "x" * 1000, large=True)
            published.make_room(working)
            assert not any(first.remembered.values())
            assert reading.rows("SELECT 1 AS n") == [{"n": 1}], "others read on"
            with published.look() as later:
                assert later._state is not first
        assert first.users == 1
    with pytest.raises(Exception, match="closed"):
        first.connection.execute("SELECT 1")
    published.close()


def test_no_page_fails_while_the_store_is_replaced(other: Path, home: Home) -> None:
    at, answers, states = Home(other.parent, home.data), [], set()

    def read() -> None:
        with Bench.of(at) as bench:
            reader = let_in(bench)
            for _ in range(2):
                for address in ("/", turns_of(FALLING, verdict="wrong"), turn_of("harbour/ship_00#1", FALLING)):
                    answers.append(reader.get(address))
                    states.add(bench.published._state)

    reading = threading.Thread(target=read)
    reading.start()
    number = 0
    while reading.is_alive():
        replaced(other, home, number := number + 1)
        reading.join(0.02)
    assert [answer.status_code for answer in answers] == [200] * 6
    assert len(states) > 1, "pages were read from several states of the store"


@pytest.mark.always
def test_what_is_no_store_is_a_sentence(tmp_path: Path, home: Home) -> None:
    with Bench.of(Home(tmp_path, home.data)) as bench:
        reader = let_in(bench)
        answer = reader.get("/")
        assert answer.status_code == 503
        assert "run `eval-pipeline run` first" in Parts(answer.text).text
        (tmp_path / "eval.duckdb").write_text("no store")
        assert "publish --full" in reader.get("/").text
        shutil.copy(home.store, tmp_path / "copy")
        os.replace(tmp_path / "copy", tmp_path / "eval.duckdb")
        assert reader.get("/").status_code == 200


def test_little_memory_and_nothing_to_write_are_told(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval_pipeline.view.published.SETTINGS", {"memory_limit": "20MB", "threads": 1})
    published = PublishedStore(home.store)
    with published.look() as look:
        with pytest.raises(StoreError, match="more memory"):
            look.rows("SELECT list(a.range) FROM range(5000000) a, range(3)")
        assert look.rows("SELECT 1 AS n") == [{"n": 1}]
    published.close()
    connection = connect_read_only(home.store, {"threads": 1})
    for sql in ("CREATE TABLE x (y INT)", f"COPY (SELECT 1) TO '{home.store}'", "SET threads = 4"):
        with pytest.raises(Exception, match=r"(?i)read-only|disabled|locked"):
            connection.execute(sql)
    connection.close()


@pytest.mark.services("ui")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_interrupted(home: Home, end: signal.Signals) -> None:
    with serving(home) as command, httpx2.Client(follow_redirects=True) as browser:
        address = command.stdout.readline().removeprefix("open ").strip()
        assert "harbour" in browser.get(address).text
        assert httpx2.get(address.partition("?")[0]).status_code == 403
        command.send_signal(end)
        assert command.wait(20) == 0
        assert command.stderr.read() == ""


HEAD = b"HTTP/1.1\r\nHost: 127.0.0.1\r\n"
DAWDLING = {
    "says nothing": b"",
    "sends half of the head": b"GET / " + HEAD,
    "sends half of the form": b"POST /noted " + HEAD + b"Content-Length: 9\r\n\r\na=",
    "sends half of the next head": b"GET / " + HEAD + b"\r\n",
    "does not read": b"GET /large " + HEAD + b"\r\n",
}


@pytest.mark.parametrize("what", DAWDLING)
def test_who_dawdles_is_sent_away(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the server's patience ends the connection: the other side keeps it open, and waits for the end."""
    forms: list[dict[str, list[str]]] = []

    async def answer(request: Request) -> Response:
        forms.append(await _form(request) if request.method == "POST" else {})
        return PlainTextResponse("x" * (20_000_000 if request.url.path == "/large" else 3))

    routes = [Route("/{page:path}", answer, methods=["GET", "POST"])]
    monkeypatch.setattr(Impatient, "sending_s", 30.0 if "read" in what else 0.02)
    monkeypatch.setattr(Impatient, "reading_s", 0.02 if "read" in what else 30.0)
    config = uvicorn.Config(Starlette(routes=routes), lifespan="off", log_level="critical", timeout_keep_alive=60)
    config.load()

    async def dawdle() -> None:
        lost = asyncio.Event()

        class Watched(Impatient):
            def connection_lost(self, exc: Exception | None) -> None:
                super().connection_lost(exc)
                lost.set()

        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: Watched(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2], limit=1_000)
            writer.write(DAWDLING[what])
            if "next" in what:
                await reader.readuntil(b"xxx")
                writer.write(b"GET / HT")
            await asyncio.wait_for(lost.wait(), 20)
            await asyncio.gather(*state.tasks, return_exceptions=True)
            writer.close()

    asyncio.run(dawdle())
    assert forms == ([{}] if "next" in what or "read" in what else []), "half a form is none"
