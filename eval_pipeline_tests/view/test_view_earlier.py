"""Earlier evaluations of a date in the workbench: beside the newest one, and on pages of their own."""

from uuid import uuid4

from eval_pipeline.providers.base import Call
from eval_pipeline.view.page import Bench
from eval_pipeline.workspace.evaluations import evaluations
from eval_pipeline_tests.support import DAY, Lab, Puppet, number
from eval_pipeline_tests.view.pages import Parts, is_harmless, let_in

VERSION = "puppet+terse"


def _obeying(call: Call) -> str:
    return number(1) if "Say 1." in call.prompt.text() else call.gold.oracle()


def test_what_was_before_is_beside_what_is_now_and_has_pages_of_its_own(small: Lab) -> None:
    Puppet.answer = staticmethod(_obeying)
    for sentence in ("Be right.", "Say 1."):
        small.suite(prompts={"terse": {"instructions": sentence}})
        small.evaluate(version=VERSION, run_id=uuid4().hex, publish=True)
    now, before = evaluations(small.workspace(), "small", VERSION)
    with Bench.of(small.home) as bench:
        client = let_in(bench)
        found = client.get("/suites/small/compare", params={"a": f"{VERSION}@before", "b": VERSION})
        assert f"&evaluations={before.id},-" in str(found.url)
        is_harmless(found.text)
        text = Parts(found.text).text
        assert text.count(f"({DAY} ") > 4, "each is named with its time"
        assert "Only B wrong 3" in text and "Made with: prompt changed." in text
        assert "- Be right. + Say 1." in text
        by_id = client.get("/suites/small/compare", params={"a": before.id, "b": now.id})
        assert by_id.url == found.url
        assert client.get(f"{found.url}&q=plan&group=rw").status_code == 200

        for address in Parts(found.text).links(f"evaluation={before.id}"):
            page = client.get(address)
            assert page.status_code == 200
            is_harmless(page.text)
            assert before.id in Parts(page.text).text
        turns = f"/suites/small/turns?model_version=puppet%2Bterse&eval_date={DAY}"
        right = {place: Parts(client.get(turns + place).text).text.count("✓ right") for place in (
            "", f"&evaluation={before.id}", f"&evaluation={now.id}",
        )}  # fmt: skip
        assert list(right.values()) == [0, 3, 0]
        assert client.get(f"{turns}&evaluation=ffffffffff").status_code == 404
