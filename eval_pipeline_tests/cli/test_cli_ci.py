"""What `run` and `compare` leave for CI: exit codes, JUnit files, Markdown and the summary of a step."""

from pathlib import Path

import pytest
from lxml import etree

from eval_pipeline_tests.operations.ci.test_ci_files import MARKDOWN, SCHEMA
from eval_pipeline_tests.support import BROKEN, Lab, Puppet, case

CASES = [case(f"case_{i:02}", ("50", 50.0)) for i in range(12)]


@pytest.fixture
def ready(lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A home with `oracle`, which is right, and `null`, which never is."""
    lab.suite(cases=CASES)
    lab.versions({"name": "good", "provider": "oracle"}, {"name": "bad", "provider": "null"})
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return lab


def cases_of(path: Path) -> dict[str, str]:
    """The outcome of each test case of a valid JUnit file, by name."""
    found = etree.parse(str(path))
    SCHEMA.assertValid(found)
    return {one.get("name"): one[0].tag if len(one) else "passed" for one in found.iter("testcase")}


@pytest.mark.always
def test_gates_of_runs_and_comparisons(ready: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    junit, summary = tmp_path / "run.xml", tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    run = ("run", "--suite", "small", "--no-report")
    assert ready.cli(*run, "--model-version", "good", "--fail-below", "correct=1", "--junit", str(junit)).code == 0
    assert cases_of(junit) == {"evaluation": "passed", "correct >= 1": "passed"}
    assert "2 of 2 checks and gates passed" in summary.read_text()

    gates = ("--fail-below", "correct=0.5", "--baseline", "good", "--junit", str(junit))
    said = ready.cli(*run, "--no-canary", "--model-version", "bad", *gates)
    assert said.code == 1
    found = cases_of(junit)
    assert (found["correct >= 0.5"], found["not worse than good"]) == ("failure", "failure")
    assert "small, bad: correct is 0.0%, the gate is 50%" in said.err
    assert "correct is 0.0%" in summary.read_text()

    both = ("--suite", "small", "--junit", str(junit))
    plain = ready.cli("compare", "good", "bad", *both)
    assert plain.code == 0
    assert cases_of(junit) == {"comparison": "passed"}
    worse = ready.cli("compare", "good", "bad", *both, "--fail-if-worse", "--format", "markdown")
    assert worse.code == 1
    assert cases_of(junit) == {"bad is not worse than good": "failure"}
    assert "small: bad is significantly worse than good" in worse.err
    assert ready.cli("compare", "bad", "good", *both, "--fail-if-worse").code == 0

    saved = str(tmp_path / "main.json")
    assert ready.cli("compare", "good", "--save", saved).code == 0
    kept = ready.cli("compare", "bad", "--baseline", saved, *both, "--fail-if-worse")
    assert (kept.code, "bad is significantly worse than good (main.json)" in kept.err) == (1, True)
    assert cases_of(junit) == {"bad is not worse than good (main.json)": "failure"}
    assert "12 turns, both answered, only good (main.json) right" in kept.out
    assert "\n    small/case_00#0  case_00 0?\n" in kept.out
    assert "\n    and 2 more: --format json has all\n" in kept.out
    assert ready.cli("compare", "good", saved, "--fail-if-worse").code == 0
    gated = ready.cli(*run, "--no-canary", "--model-version", "bad", "--baseline", saved)
    assert (gated.code, "worse than" in gated.err) == (1, True)
    assert ready.cli(*run, "--model-version", "good", "--baseline", saved).code == 0
    missing = ready.cli(*run, "--model-version", "good", "--baseline", "good@before")
    assert (missing.code, "small, good: 'good' has no complete evaluation before" in missing.err) == (1, True)
    refused = ready.cli("compare", "good@before", "good")
    assert (refused.code, "'good' has no complete evaluation before its latest one on small" in refused.err) == (
        2,
        True,
    )

    rows = [token.content for token in MARKDOWN.parse(worse.out) if token.type == "inline"]
    assert rows[0] == "`small`: `good` → `bad`"
    assert rows[rows.index("evaluated") + 1].endswith("(today)")
    edition = rows[rows.index("edition of the gold") + 1]
    assert edition.startswith("1 (")
    assert worse.out.strip() in summary.read_text()


def test_a_run_that_breaks_is_an_error_in_its_file(ready: Lab, tmp_path: Path) -> None:
    Puppet.answer = staticmethod(lambda call: BROKEN)
    ready.versions({"name": "puppet", "provider": "puppet"})
    ready.suite(cases=[*CASES, case("wrong", ("50", 51.0))])
    (ready.home.data / "suites" / "small" / "cases" / "bad.yaml").write_text("id: [")
    said = ready.cli("run", "--no-report", "--junit", str(tmp_path / "run.xml"))
    assert said.code == 1
    assert cases_of(tmp_path / "run.xml") == {"evaluation": "error"}


@pytest.mark.parametrize("arguments", [("run",), ("compare", "good", "bad")], ids=lambda found: found[0])
def test_a_junit_file_that_cannot_be_written_is_refused_before_anything_is_asked(
    arguments: tuple[str, ...], ready: Lab, tmp_path: Path
) -> None:
    said = ready.cli(*arguments, "--junit", str(tmp_path / "missing" / "file.xml"))
    assert said.code == 2
    assert "expected a file in a folder that exists and can be written to" in said.err
    assert not ready.home.record.exists()


def test_unknown_formats_are_named(ready: Lab) -> None:
    said = ready.cli("compare", "good", "bad", "--format", "html")
    assert said.code == 2
    assert "one of: text, markdown, table, csv, json" in said.err
