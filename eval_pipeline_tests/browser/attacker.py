"""A page on another port of this machine that tries to have the UI do something."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import httpx2
from playwright.sync_api import Page

from eval_pipeline_tests.browser.ui import UI

FOREIGN = "evil.example"
"""A name that the browser is told to look up as this machine, as after DNS rebinding."""

LAUNCH = """mutation { launchRun(executionParams: { selector: { repositoryLocationName: "eval_pipeline", repositoryName:
  "__repository__", jobName: "suite_lighthouse" }, runConfigData: {}, executionMetadata: { tags: [ { key: "attack",
  value: "yes" }, { key: "dagster/partition", value: "model-a" } ] } }) { __typename } }"""
PAGE = """<!doctype html><title>trying</title><body><script>
const target = TARGET, mutation = MUTATION, body = JSON.stringify({query: mutation});
const said = {}, waiting = [];
const image = new Image(); image.src = target + "/graphql?query=" + encodeURIComponent(mutation);
document.body.append(image);
const frame = document.createElement("iframe"); frame.src = target + "/"; document.body.append(frame);
for (const kind of ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"]) {
  const inner = document.createElement("iframe"); inner.name = kind; document.body.append(inner);
  const form = document.createElement("form");
  Object.assign(form, {action: target + "/graphql", method: "POST", enctype: kind, target: kind});
  const input = document.createElement("input");
  // As plain text, this is JSON that GraphQL would take.
  [input.name, input.value] = kind == "text/plain" ? [body.slice(0, -1) + ', "a": "', '"}'] : ["query", mutation];
  form.append(input); document.body.append(form); form.submit();
}
for (const mode of ["cors", "no-cors"]) {
  for (const kind of ["application/json", "text/plain"]) {
    const asked = fetch(target + "/graphql", {method: "POST", mode, credentials: "include", body,
      headers: {"Content-Type": kind}});
    waiting.push(asked.then(answer => answer.text()).then(text => { if (text) said[mode + kind] = text; }, () => {}));
  }
}
waiting.push(new Promise(done => {
  const socket = new WebSocket(target.replace("http", "ws") + "/graphql", "graphql-ws");
  socket.onopen = () => { said.socket = "open"; done(); };
  socket.onerror = socket.onclose = () => done();
}));
Promise.all(waiting).then(() => setTimeout(() => { window.said = said; document.title = "tried"; }, 2000));
</script>"""


@contextmanager
def serving(html: str) -> Iterator[str]:
    """A web server with one page; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = html.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def what_other_pages_get(ui: UI, page: Page) -> dict[str, str]:
    """What a page of another port could read, in a browser that is let in by the UI."""
    html = PAGE.replace("TARGET", json.dumps(ui.url)).replace("MUTATION", json.dumps(LAUNCH))
    with serving(html) as address:
        other = page.context.new_page()
        other.goto(address)
        other.wait_for_function("document.title == 'tried'")
        said: dict[str, str] = other.evaluate("said")
        other.close()
    return said


def what_a_foreign_name_gets(ui: UI, page: Page) -> int:
    """The status of the UI's first page under a name that is not its own."""
    other = page.context.new_page()
    answer = other.goto(ui.url.replace("127.0.0.1", FOREIGN))
    assert answer is not None
    other.close()
    return answer.status


def what_scripts_without_the_token_get(ui: UI) -> list[int]:
    """Statuses of requests as a script sends them."""
    address = f"{ui.url}/graphql"
    return [
        httpx2.get(ui.url).status_code,
        httpx2.post(address, json={"query": LAUNCH}).status_code,
        httpx2.get(f"{address}?query={quote(LAUNCH)}").status_code,
        httpx2.post(address, json={"query": LAUNCH}, headers={"Authorization": "Bearer wrong"}).status_code,
    ]
