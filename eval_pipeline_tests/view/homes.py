"""A home for the tests of the workbench: real evaluations whose texts mean harm, some of them lost since yesterday."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from unittest.mock import patch

from eval_pipeline.core.home import Home
from eval_pipeline.providers import registry
from eval_pipeline.providers.base import Call
from eval_pipeline.workspace.watching.status import Status
from eval_pipeline.workspace.watching.watch import write_status
from eval_pipeline_tests.support import BROKEN, Answer, Lab, Puppet, case, number, response, surroundings

SUITE = "harbour"
STEADY, FALLING, HOSTILE = "steady", "falling", "hostile"
FIRST, LAST = date(2026, 3, 1), date(2026, 3, 2)
PLAIN_CASES = 12
TURNS = 2 * PLAIN_CASES + 7
HOSTILE_CASE = "=1+1/../..\\x y~%☃"
HOSTILE_TEXTS = (
    "<script>window.pwned = 1</script>",
    '"><img src=x onerror="window.pwned = 2">',
    "</pre></main><style>* { display: none !important }</style><svg onload='window.pwned = 3'>",
    "safe \u202eevil\u2066 \x1b[31mred\x1b[2J\x07 {{ 7 * 7 }} {% raw %}",
    "javascript:window.pwned=4",
    '=HYPERLINK("http://x.invalid","click")',
    "w" * 1_000_000 + "<b>end",
)


def build(folder: Path) -> None:
    """Fills a folder with the home of `lab_in`."""
    lab = Lab.at(folder)
    cases = lab.suite(SUITE, _plain_cases(), description="Ships <and> harbours.") / "cases"
    (cases / "zz_hostile.yaml").write_text(json.dumps(_hostile_case()))
    lab.versions(*({"name": name, "provider": "puppet"} for name in (STEADY, FALLING, HOSTILE)))
    with surroundings(lab), patch.dict(registry.PROVIDERS, {"puppet": f"{Puppet.__module__}:Puppet"}):
        for version, day in ((STEADY, FIRST), (FALLING, FIRST), (FALLING, LAST), (HOSTILE, LAST)):
            Puppet.reset()
            Puppet.answer = staticmethod(_ANSWERS[version, day])
            lab.evaluate(SUITE, version, day=day, run_id=f"{version}{day}", epoch=f"{version}{day}")
        Puppet.reset()
        of_suite = lab.inputs(SUITE, STEADY, day=FIRST)
        for stage in ("published", "model_comparisons", "trends"):
            lab.stage(stage, of_suite)
        for version, day in ((FALLING, FIRST), (FALLING, LAST), (HOSTILE, LAST)):
            lab.stage("published", lab.inputs(SUITE, version, day=day))
        lab.stage("comparison_published", of_suite)
    request = {"partitions": [[SUITE, HOSTILE, LAST.isoformat()]]}
    errors = [[text[:2000], 1, text[:2000]] for text in HOSTILE_TEXTS]
    left = Status("ended-early", "run", "", 0.0, "stopped", request, errors=errors, problems=[HOSTILE_TEXTS[3]])
    write_status(lab.home, replace(left, place=[SUITE, HOSTILE, LAST.isoformat()], step="asking", total=31, done=9))


def home_in(folder: Path) -> Home:
    """The home that `build` made."""
    return Lab.at(folder).home


def _plain_cases() -> list[dict]:
    turns = [((str(10 + n), 10.0 + n), (f"add({10 + n}, 7)", 17.0 + n)) for n in range(PLAIN_CASES)]
    return [case(f"ship_{n:02}", *asked, tags=[("even", "odd")[n % 2]]) for n, asked in enumerate(turns)]


def _hostile_case() -> dict:
    found = case(HOSTILE_CASE, *((str(n), float(n)) for n in range(len(HOSTILE_TEXTS))), tags=list(HOSTILE_TEXTS[:5]))
    for turn, text in zip(found["turns"], HOSTILE_TEXTS, strict=True):
        turn["question"] = f"what of {text[:2000]}?"
    return found


def _steady(call: Call) -> Answer:
    """Right, but for one answer that cannot be read at first."""
    return BROKEN if call.turn_id.endswith("ship_03#1") and call.number == 0 else call.gold.oracle()


def _fallen(call: Call) -> Answer:
    """Wrong on most of what was right the day before."""
    return number(-1) if call.case_id.startswith("ship") and call.turn_index == 1 else call.gold.oracle()


def _harm(call: Call) -> Answer:
    text = HOSTILE_TEXTS[call.turn_index]
    if call.case_id != HOSTILE_CASE:
        return number(text[:300]) if call.turn_index else call.gold.oracle()
    plan = [{"tool": "extract", "value": text[:300], "source": text[:300]}]
    return response(json.dumps({"plan": plan}) if call.number else text, reasoning=f"I think {text}")


def _right(call: Call) -> Answer:
    return call.gold.oracle()


_ANSWERS = {
    (STEADY, FIRST): _steady,
    (FALLING, FIRST): _right,
    (FALLING, LAST): _fallen,
    (HOSTILE, LAST): _harm,
}
