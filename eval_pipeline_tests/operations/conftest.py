"""Fixtures of what is done to homes."""

import pytest

from eval_pipeline_tests.operations.leaving import MARKER, NEXT, answer_of
from eval_pipeline_tests.support import DAY, Lab, Puppet, case, command


@pytest.fixture
def home(lab: Lab, puppet: type[Puppet], few_pictures: None) -> Lab:
    """`leaving` and `staying`, each evaluated on two suites, the first on two nights, with reports and comparisons."""
    lab.suite()
    lab.suite("other", [case("gamma", ("50", 50.0), ("add(50, 7)", 57.0))])
    lab.versions(*({"name": name, "provider": "puppet", "model": name} for name in ("leaving", "staying")))
    for name, text in (("leaving", MARKER), ("staying", "plain words")):
        puppet.answer = staticmethod(answer_of(text))
        for suite, day in (("small", DAY), ("small", NEXT), ("other", DAY)):
            said = command("run", "--suite", suite, "--model-version", name, "--eval-date", str(day), "--fresh")
            assert said.code in {0, 1}, said.text
    return lab
