"""A home with an evaluation of each track, whose answers are partly wrong and partly hostile."""

import json
from datetime import date
from pathlib import Path
from unittest.mock import patch

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.home import Home
from eval_pipeline.providers import registry
from eval_pipeline.providers.base import Call
from eval_pipeline_plugins.tracks.pandas_code.running.runner import sandbox
from eval_pipeline_plugins.tracks.sdmx.catalogue.term_lists import write_terms
from eval_pipeline_tests.support import Lab, Puppet, case, surroundings
from eval_pipeline_tests.tracks.pandas_code.helpers import answer as code
from eval_pipeline_tests.tracks.pandas_code.helpers import stall_lab
from eval_pipeline_tests.tracks.sdmx.helpers import LISTED, raw_case
from eval_pipeline_tests.tracks.sdmx.helpers import response as selection
from eval_pipeline_tests.tracks.sql.helpers import OSLO, TOTALS, shop_lab
from eval_pipeline_tests.tracks.sql.helpers import answer as query

DAY = date(2026, 3, 1)
HARM = "<script>window.pwned = 1</script>\u202e\x1b[31m"


def build(folder: Path) -> None:
    """Fills a folder with the home of `home_in`."""
    lab = Lab.at(folder)
    lab.suite("pages", [case("fuel", ("50", 50.0), ("add(50, 7)", 57.0))])
    shop_lab(
        lab, OSLO, TOTALS, {**OSLO, "id": "harm"}, {**OSLO, "id": "more", "compare": {"insist": ["extra_columns"]}}
    )
    stall_lab(lab, timed_runs=1)
    target = {"D:ONE INDICATOR": ["GDP"], "D:ONE COUNTRY": ["MEX"]}
    requests = [(f"request {n}", target) for n in range(3)]
    terms = lab.suite("terms", [raw_case(*requests)], track="sdmx") / "structures"
    terms.mkdir()
    write_terms(terms / "terms.csv", LISTED)
    lab.versions({"name": "puppet", "provider": "puppet"})
    with surroundings(lab), patch.dict(registry.PROVIDERS, {"puppet": f"{Puppet.__module__}:Puppet"}):
        Puppet.reset()
        Puppet.answer = staticmethod(lambda call: _SAID.get(call.turn_id) or _oracle(call))
        for suite in ("pages", "shop", "terms", *(["stall"] if has_sandbox() else [])):
            lab.evaluate(suite, day=DAY, publish=True)
        Puppet.reset()


def has_sandbox() -> bool:
    """Whether something on this machine can hold code."""
    try:
        sandbox()
    except EvalError:
        return False
    return True


def home_in(folder: Path) -> Home:
    """The home that `build` made."""
    return Lab.at(folder).home


def _oracle(call: Call) -> str:
    return call.gold.oracle()


def _plan(*steps: dict) -> str:
    return json.dumps({"plan": list(steps)})


_SAID = {
    "pages/fuel#1": _plan(
        {"tool": "extract", "value": 50, "source": HARM},
        {"tool": "extract", "value": 8},
        {"tool": "compute", "operation": "add", "args": ["#0", "#1"]},
    ),
    "shop/oslo#0": query("SELECT name FROM customers WHERE city = 'Bergen'"),
    "shop/harm#0": query(f"SELECT '{HARM}' AS \"{HARM}\""),
    "shop/more#0": query("SELECT name, id FROM customers WHERE city = 'Oslo'"),
    "stall/talk#0": code("result = len(sold)"),
    "stall/largest#0": code(f"result = {HARM!r}"),
    "stall/totals#0": code(f"raise KeyError({HARM!r})"),
    "terms/c1#1": selection({"D:ONE INDICATOR": ["GDPPC"], "D:ONE COUNTRY": ["MEX"], "D:TWO COUNTRY": ["EST"]}),
    "terms/c1#2": selection({f"{HARM.replace(' ', '')} X": [{"id": HARM, "name": HARM}]}),
}
