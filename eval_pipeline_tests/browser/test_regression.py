"""The worked example of docs/workbench.md: a changed prompt breaks growth rates, and its cause is found by clicks."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from eval_pipeline_tests.browser.test_side_by_side import Counted
from eval_pipeline_tests.reports.browser import chromium
from eval_pipeline_tests.support import DAY, Lab, case, surroundings
from eval_pipeline_tests.view.pages import served

pytestmark = pytest.mark.services("browser", "ui")
BEFORE, AFTER = "analyst-prompt-7", "analyst-prompt-8"
RULES = {BEFORE: "Growth is relative to the earlier figure.", AFTER: "Growth is relative to the newer figure."}
CASES = 8


def _answers(version: str, page: int) -> Iterator[dict]:
    """Of one page: the growth, wrong after the change, and another answer that some get wrong in either."""
    base = "50" if version == BEFORE else "60"
    other = "50" if page % 4 else "5000" if version == BEFORE or page else "50"
    for index, said in enumerate((f"subtract(60, 50), divide(#0, {base})", other)):
        prompt = (
            f"[system]\nYou are an analyst.\n{RULES[version]}\nAnswer in JSON.\n\n[user]\nthe report\n{page}#{index}?"
        )
        yield {"case_id": f"page_{page}", "turn_index": index, "calculation": said, "prompt": prompt} | {
            "answer": (60 - 50) / float(base) if index == 0 else float(other)
        }


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[str]:
    """The address of the workbench of a home with the answers before and after the change."""
    lab = Lab.at(tmp_path)
    pages = [
        case(f"page_{n}", ("subtract(60, 50), divide(#0, 50)", 0.2), ("50", 50.0), tags=["growth"])
        for n in range(CASES)
    ]
    lab.suite("filings", pages)
    lab.versions()
    with surroundings(lab):
        for version in (BEFORE, AFTER):
            recorded = tmp_path / f"{version}.jsonl"
            recorded.write_text("".join(json.dumps(one) + "\n" for n in range(CASES) for one in _answers(version, n)))
            said = lab.cli("import", "predictions", str(recorded), "--suite", "filings", "--model-version", version)
            assert said.code == 0, said.text
            lab.evaluate("filings", version, day=DAY, run_id=version, publish=True)
    with served(lab.home, "--no-token") as address:
        yield address


def test_the_cause_of_a_regression_is_three_keys_or_clicks_away(opened: str) -> None:
    with chromium() as browser:
        page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
        page.goto(opened)
        user = Counted(page)
        user.press("c")
        expect(page.locator(".sides")).to_contain_text(AFTER)
        user.click("Only B wrong")
        expect(page.get_by_role("status")).to_contain_text(f"{CASES} of {2 * CASES} turns")
        expect(page.get_by_role("row", name="swapped_operands")).to_have_text(
            re.compile(rf"swapped_operands\s*0\s*{CASES}")
        )
        user.click("asked with another prompt than A")
        differs = page.locator("section[aria-labelledby=prompt]")
        expect(differs).to_be_in_viewport()
        expect(differs.locator("del")).to_have_text("earlier")
        expect(differs.locator("ins")).to_have_text("newer")
        expect(differs.locator("pre")).to_have_count(1)  # the user's message is the same
        assert user.count == 3
        page.get_by_role("link", name=f"A {BEFORE}").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("✓ right")
        expect(page.locator("section[aria-labelledby=prompt]")).to_have_count(0)
