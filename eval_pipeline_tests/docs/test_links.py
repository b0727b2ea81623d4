"""The documents are there, their links lead somewhere, and the README shows what a run really prints."""

import re
from pathlib import Path

import pytest

from eval_pipeline_tests.docs.test_cookbook import MODEL_VERSIONS, store

__all__ = ["store"]

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"])
EXPECTED = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md", "docs/operations.md", "docs/finqa.md"),
    *("docs/sql-cookbook.md", "docs/decisions/README.md"),
)

_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_FROM_AN_INDEX = re.compile(r"install [^`\n]*\beval-pipeline(?!\[|[^`\n]* @ )[^`\n]*")
"""A line that would take the package from an index; an extra of one that is installed needs none."""
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as they are made from their words."""
    found = set()
    for match in _HEADING.finditer(document.read_text(encoding="utf-8")):
        words = re.sub(r"[^\w\- ]", "", match["text"].lower())
        found.add(words.strip().replace(" ", "-"))
    return found


def dead_links(document: Path) -> list[str]:
    text = _CODE.sub("", document.read_text(encoding="utf-8"))
    dead = []
    for match in _LINK.finditer(text):
        target = match["target"]
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        if not path.exists() or (anchor and anchor not in anchors(path)):
            dead.append(target)
    return dead


@pytest.mark.parametrize("name", EXPECTED)
def test_document_is_there_and_says_something(name: str) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8")) > 500


GUIDES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_guide_begins_with_what_it_is_for(guide: Path) -> None:
    title, purpose = guide.read_text(encoding="utf-8").split("\n\n")[:2]
    assert title.startswith("# ")
    assert purpose[0].isalnum(), "words first, before commands and tables"
    assert purpose.count("\n") < 3 and len(purpose) <= 400


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    assert dead_links(document) == []


def test_no_line_installs_the_package_from_an_index_which_has_none() -> None:
    templates = (ROOT / "eval_pipeline" / "operations" / "project" / "template").iterdir()
    wrong = {path.name: _FROM_AN_INDEX.findall(path.read_text("utf-8")) for path in [*DOCUMENTS, *templates]}
    assert not {name: lines for name, lines in wrong.items() if lines}


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        document = waiting.pop()
        if document in reached or document.suffix != ".md" or not document.exists():
            continue
        reached.add(document)
        targets = (match["target"] for match in _LINK.finditer(document.read_text(encoding="utf-8")))
        waiting += [
            (document.parent / target.partition("#")[0]).resolve()
            for target in targets
            if not target.startswith("http")
        ]
    decisions = set((ROOT / "docs" / "decisions").glob("*.md"))
    assert {ROOT / name for name in EXPECTED} | decisions <= reached


def test_decisions_are_listed_in_order_and_once() -> None:
    listed = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    numbers = re.findall(r"^\| \[(\d{4})\]\(\1-[\w-]+\.md\) \| ", listed, re.MULTILINE)
    assert numbers == sorted(set(numbers)), "put each row where its number belongs"
    assert len(numbers) == len(re.findall(r"^\| \[", listed, re.MULTILINE))


def test_commands_of_the_readme_exist() -> None:
    from eval_pipeline.operations.added_commands import ALL_COMMANDS, COMMANDS

    known = COMMANDS | {name for name, plugin in ALL_COMMANDS.installed().items() if plugin.is_ours}
    text = "\n".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    named = set(re.findall(r"(?:^|`)eval-pipeline (\w[\w-]*)", text, re.MULTILINE))
    assert named == known


def test_metrics_in_the_guide_are_those_of_the_track() -> None:
    from eval_pipeline_plugins.tracks.finqa.metrics import METRICS

    guide = (ROOT / "docs" / "finqa.md").read_text(encoding="utf-8")
    section = guide.partition("## Metrics")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [metric.name for metric in METRICS]


def test_headline_in_the_readme_is_what_a_run_prints(store: Path) -> None:
    from eval_pipeline.core import shown
    from eval_pipeline.store.published.query import run_query

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    costs = "JOIN latest_cost_per_correct_answer USING (suite, model_version)"
    rows = run_query(store, f"SELECT * FROM leaderboard {costs} WHERE suite = 'finqa_sample'").to_pylist()
    assert {row["model_version"] for row in rows} == set(MODEL_VERSIONS)
    for row in rows:
        line = next(line for line in readme.splitlines() if line.split()[:1] == [row["model_version"]])
        told = shown.estimate(row["accuracy"], row["low"], row["high"])
        cost = f" {shown.tokens(row['tokens_per_correct_turn'])} tokens "
        assert told in line and cost in line, "run `eval-pipeline run` and paste its headline"
