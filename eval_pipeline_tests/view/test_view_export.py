"""An evaluation as a folder: what is in it, that nothing runs or leads home, a fair sample, reports, the command."""

import json
import os
import re
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.places.paths import exported_folder, turn_page
from eval_pipeline.view.evaluation import evaluation_at
from eval_pipeline.view.exporting import data, folder
from eval_pipeline.view.exporting.data import chosen_turns, data_script, script_json
from eval_pipeline.view.exporting.folder import Exported, export_evaluation
from eval_pipeline.view.published import StoreView
from eval_pipeline_tests.support import Lab, command
from eval_pipeline_tests.view.homes import FALLING, HOSTILE, HOSTILE_CASE, HOSTILE_TEXTS, LAST, STEADY, SUITE, TURNS
from eval_pipeline_tests.view.pages import CONTROL, OURS, Parts

BAD = ["</script><script>alert(1)//", "a\u2028b\u2029c", "<!--", "\x1b[31m\u202eevil", "\x7f", "]]>", "\ud800", "é☃"]


@pytest.fixture(scope="module")
def exported(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    return export_evaluation(home, SUITE, HOSTILE, None, tmp_path_factory.mktemp("handed") / "on")


def entries(place: Path) -> list[dict]:
    """What the script of a folder is handed."""
    text = (place / "data.js").read_text()
    found = re.fullmatch(r"globalThis\.exportedTurns = (\[.*\]);\n", text)
    return json.loads(found[1])


def test_every_turn_has_a_page_a_line_and_links_that_stay_in_the_folder(exported: Exported) -> None:
    lines = entries(exported.folder)
    assert (len(lines), exported.turns) == (TURNS, f"All {TURNS} turns of the evaluation.")
    for line in lines:
        page = Parts((exported.folder / line["page"]).read_text())
        assert line["place"] in page.text
        assert {"Attempts", "What the metrics say", "What the model was asked"} <= set(page.texts)
    assert {line["verdict"] for line in lines} == {"right", "wrong"}
    assert exported.size == sum(path.stat().st_size for path in exported.folder.rglob("*") if path.is_file())
    # No address of a server, no token: a browser that opens it asks nobody.
    for path in exported.folder.rglob("*.html"):
        html = path.read_text()
        for tag, attributes in Parts(html).elements:
            for name in ("href", "src", "action"):
                target = attributes.get(name) or "#"
                if not target.startswith(("#", "data:,")):
                    assert (path.parent / target).resolve().is_relative_to(exported.folder), (tag, target)
                    assert (path.parent / target).is_file(), (tag, target)
        assert not re.search(r"127\.0\.0\.1|localhost|token=|/suites/", html)
    for path in exported.folder.rglob("*"):  # else a purge of other evaluations would have to look for it
        if path.is_file():
            assert STEADY not in path.read_text()


def test_hostile_texts_are_texts(exported: Exported) -> None:
    for path in exported.folder.rglob("*.html"):
        html = path.read_text()
        page = Parts(html)
        assert {tag for tag, _ in page.elements} <= OURS
        for tag, attributes in page.elements:
            assert not [name for name in attributes if name.startswith("on") or name in {"style", "srcdoc"}]
            assert tag != "script" or attributes["src"] in {"data.js", "list.js"}
        assert not [character for character in CONTROL if character in html]
    text = (exported.folder / "data.js").read_text()
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert text.count("\n") == 1
    wild = next(line for line in entries(exported.folder) if HOSTILE_CASE in line["place"])
    assert HOSTILE_TEXTS[0] in wild["question"]


@pytest.mark.parametrize("text", BAD)
def test_no_text_ends_the_script_or_its_line(text: str) -> None:
    said = script_json({"x": text})
    assert said.isascii()
    assert not re.search("[<>&\n\x7f]", said)
    assert json.loads(said) == {"x": text}
    assert data_script([]) == "globalThis.exportedTurns = [];\n"


@pytest.mark.always
def test_text_is_found_by_what_any_of_them_says(exported: Exported) -> None:
    lines = {line["place"]: line["text"] for line in entries(exported.folder)}
    first = lines[f"{HOSTILE_CASE} #0"]
    assert "what of <script>" in first, "the question"
    assert '{"plan"' in first, "a response of a later attempt"
    assert "the response holds no json" in first, "an error"
    assert all(len(text) < 6 * data.MOST_SEARCHED for text in lines.values())


def test_above_the_bound_a_fair_sample_is_drawn_and_told(look: StoreView) -> None:
    evaluation = evaluation_at(look, Partition(SUITE, FALLING, LAST))
    found = chosen_turns(look, evaluation, 10)
    assert found.text.startswith(f"10 of {TURNS} turns: a folder takes 5,000 at most, so these were drawn at random")
    places = [(row["case_id"], row["turn_index"]) for row in found.rows]
    assert len(set(places)) == 10
    assert places == sorted(places)
    assert chosen_turns(look, evaluation, 10).rows == found.rows, "the same ones each time"
    assert {row["turn_id"] for row in found.rows} < {row["turn_id"] for row in chosen_turns(look, evaluation, 20).rows}
    shares = [row["correct"] for row in look.rows(_DRAWN)]
    assert 0.47 < sum(shares) / len(shares) < 0.53, "what is right is drawn as often as what is wrong"


_DRAWN = """SELECT correct FROM (SELECT range % 2 = 0 AS correct, 's/page_' || range AS turn_id FROM range(20000))
    ORDER BY md5(turn_id || '~' || 0) LIMIT 5000"""


def test_only_an_earlier_export_is_replaced_and_a_page_that_would_be_too_long_leaves_out_sections(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "documents"
    target.mkdir()
    (target / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="is not an export"):
        export_evaluation(home, SUITE, STEADY, None, target)
    assert (target / "letter.txt").read_text() == "dear"
    (target / "letter.txt").unlink()
    first = export_evaluation(home, SUITE, STEADY, None, target)
    (target / "turns" / "left.html").write_text("of before")
    monkeypatch.setattr(folder, "MOST_PAGE", 9_000)
    found = export_evaluation(home, SUITE, STEADY, None, target)
    assert found.turns == first.turns
    assert not (target / "turns" / "left.html").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["documents"]
    pages = [path.read_text() for path in target.rglob("turns/*.html")]
    told = [page for page in pages if "This page would be too long; it leaves out: What the model was asked" in page]
    assert len(told) == found.shortened > 0
    assert max(len(page.encode()) for page in pages) <= 9_000


def test_the_command_writes_into_the_home_and_the_report_links_there(small: Lab) -> None:
    small.versions({"name": "leaving", "provider": "simulated", "options": {"rates": {"sign_error": 1.0}}})
    small.evaluate(version="leaving", publish=True)
    inputs = small.inputs(version="leaving")
    small.stage("report", inputs)
    page = small.home.reports / "small" / "leaving" / str(inputs.place.eval_date) / "report.html"
    assert "page of this turn" not in page.read_text()
    said = command("export", "folder", "--suite", "small", "--model-version", "leaving")
    assert said.code == 0, said.text
    target = exported_folder(small.home.exports, inputs.place)
    assert f"open {target / 'index.html'}" in said.out
    assert "outside" not in said.out
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    assert stat.S_IMODE((target / "data.js").stat().st_mode) == 0o600
    links = [link for link in Parts(page.read_text()).links("exports/") if "/turns/" in link]
    turns = [row[0] for row in small.sql("SELECT turn_id FROM turn_results WHERE NOT correct ORDER BY ALL")]
    assert turns
    assert sorted(os.path.normpath(page.parent / link) for link in links) == sorted(
        str(target / turn_page(turn, 0)) for turn in turns
    )
    assert all((page.parent / link).is_file() for link in links)
    shutil.rmtree(target)
    small.stage("report", inputs)
    assert "page of this turn" not in page.read_text(), "a link to nowhere goes with the next report"


@pytest.mark.always
def test_the_command_writes_where_it_is_told(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_HOME", str(home.root))
    monkeypatch.setenv("EVAL_DATA", str(home.data))
    place = ("--suite", SUITE, "--model-version", FALLING, "--eval-date", "2026-03-01")
    said = command("view", "--export", str(tmp_path / "out"), *place)
    assert said.code == 0, said.text
    assert "2026-03-01: All 31 turns" in said.out
    assert "`remove --purge` does not find it" in said.out
    assert (tmp_path / "out" / "index.html").is_file()
    for arguments, words in {
        ("view", "--export", "x"): "--suite and --model-version",
        ("view", "--suite", SUITE): "go with --export DIR",
        ("view", "--export", "x", "--suite", SUITE, "--model-version", "nobody"): "no evaluation of 'nobody'",
    }.items():
        told = command(*arguments)
        assert told.code != 0
        assert words in told.text, arguments


def test_turns_that_memory_does_not_take_together_are_taken_in_lots(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def narrow(look: object, evaluation: object, rows: Sequence[object]) -> None:
        taken.append(len(rows))
        if len(rows) > most:
            raise StoreError("takes more memory than the workbench may use")

    monkeypatch.setattr(folder, "narrow", narrow)
    most = 30
    assert folder.narrow_to_next(None, None, [{}] * 500) == 25  # type: ignore[arg-type]
    assert taken == [200, 100, 50, 25]
    most = 0
    with pytest.raises(StoreError, match="memory"):
        folder.narrow_to_next(None, None, [{}] * 3)  # type: ignore[arg-type]
