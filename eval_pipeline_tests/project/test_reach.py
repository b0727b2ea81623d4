"""What a change reaches, over small packages with the names of the real ones."""

import json
import subprocess
from pathlib import Path

import pytest

from eval_pipeline_tests.reach import Reach, UnreadError, reach, reached, starts_of

TREE = {
    "eval_pipeline/__init__.py": "",
    "eval_pipeline/core.py": """\
LIMIT = 3

def cut(text): return text[:LIMIT]

def joined(texts): return ''.join(texts)
""",
    "eval_pipeline/track.py": """\
from eval_pipeline.core import cut
from eval_pipeline.forms import FORMS

class Track:
    def parse(self, text): return cut(text)
""",
    "eval_pipeline/registry.py": "TRACKS = {'one': 'eval_pipeline.track:Track'}\n",
    "eval_pipeline/child.py": """\
import subprocess, sys

def start(): subprocess.run([sys.executable, '-m', __name__])

def work(): return 1
""",
    "eval_pipeline/cli/__init__.py": "",
    "eval_pipeline/cli/app.py": """\
from eval_pipeline.core import joined

def command(f): return f

def main(): pass

@command
def show(): return joined([])
""",
    "eval_pipeline/view/page.py": "def page(): pass\n",
    "eval_pipeline/view/templates/page.html.j2": "<p>",
    "eval_pipeline_tests/support.py": """\
import subprocess
from eval_pipeline.registry import TRACKS
from eval_pipeline.core import joined

ROOT = 'data/suites'

class Lab:
    def tracks(self): return TRACKS
    def joined(self): return joined([])
    def child(self): subprocess.run(['eval-pipeline'])
""",
    "eval_pipeline_tests/goldens.py": "GOLDEN = 'golden'\n\ndef golden(name): return GOLDEN + name\n",
    "eval_pipeline_tests/golden/cuts.yaml": "- 1",
    "eval_pipeline_tests/conftest.py": "from eval_pipeline_tests.support import Lab\n\ndef lab(): return Lab()\n",
    "eval_pipeline_tests/a/conftest.py": "from eval_pipeline.core import LIMIT\n\ndef limit(): return LIMIT\n",
    "eval_pipeline_tests/a/test_a.py": """\
from helper import third
from eval_pipeline.child import start
from eval_pipeline.cli.app import main
from eval_pipeline.core import cut
from eval_pipeline.forms import FORMS
from eval_pipeline.view.page import page
from eval_pipeline_tests.fakes import script
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import ROOT

CASES = golden("cuts.yaml")

def test_cut(): assert cut(CASES)

def test_track(lab): assert lab.tracks()

def test_joined(lab): assert lab.joined()

def test_child(lab): lab.child()

def test_start(): start()

def test_main(): main()

def test_page(): page()

def test_data(): ROOT

def test_beside(): third()

def test_form(): FORMS

def test_script(): open(script.__file__)
""",
    "eval_pipeline_tests/a/helper.py": "from eval_pipeline.third import plain\n\ndef third(): return plain()\n",
    "eval_pipeline_tests/fakes/script.py": "print(3)\n",
    "eval_pipeline/third.py": "def plain(): return 3\n",
    "eval_pipeline/forms.py": 'FORMS: Registry[int] = Registry(\n    "forms", {}\n)\n',
    "eval_pipeline_plugins/one/__init__.py": "ONE = str('x')\n",
    "eval_pipeline_plugins/one/read.py": "def read(): return 1\n",
    "pyproject.toml": '[project.entry-points."eval_pipeline.forms"]\none = "eval_pipeline_plugins.one:ONE"\n',
}
A = "eval_pipeline_tests.a.test_a:test_"


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("eval_pipeline/core.py", "3", "4", "cut track child"),
        ("eval_pipeline/core.py", "''.join", "' '.join", "joined child main"),
        ("eval_pipeline/core.py", "LIMIT = 3", "# a comment\nLIMIT = 3", ""),
        ("eval_pipeline/track.py", "text):", "text, more=()):", "track child"),
        ("eval_pipeline/track.py", "    def parse", "    def __eq__(self, other): pass\n    def parse", "track child"),
        ("eval_pipeline/track.py", "def parse(self, text): return cut(text)", "pass", "track child"),
        ("eval_pipeline/registry.py", "'one'", "'two'", "track child"),
        ("eval_pipeline/child.py", "return 1", "return 2", "start child"),
        ("eval_pipeline/cli/app.py", "joined([])", "joined(['a'])", "main child"),
        ("eval_pipeline/view/templates/page.html.j2", "<p>", "<b>", "page child"),
        ("eval_pipeline_tests/golden/cuts.yaml", "1", "2", "cut"),
        ("eval_pipeline_tests/goldens.py", "GOLDEN + name", "name", "cut"),
        ("eval_pipeline_tests/a/test_a.py", "main()\n\n", "main() or 1\n\n", "main"),
        ("eval_pipeline/third.py", "3", "4", "beside child"),
        ("eval_pipeline_tests/fakes/script.py", "3", "4", "script"),
        ("eval_pipeline_plugins/one/read.py", "1", "2", "form child"),
        ("data/suites/one/suite.yaml", "", "name: one", "data"),
    ],
)
def test_what_leads_to_a_change_is_reached(tmp_path: Path, file: str, old: str, new: str, expected: str) -> None:
    before, now = (written(tmp_path / name, TREE) for name in ("before", "now"))
    text = TREE.get(file, "")
    assert old in text
    written(now, {file: text.replace(old, new, 1)})
    found = {place for place in reached(before, now, {file}) if place.startswith(A)}
    assert found == {A + name for name in expected.split()}


def test_data_that_a_module_reads_and_statements_that_are_gone_reach_all_of_it(tmp_path: Path) -> None:
    module, test = "eval_pipeline/core.py", "eval_pipeline_tests/a/test_a.py"
    text = "DATA_FILES = ('a.txt',)\n\ndef cut(text): pass\n"
    before = written(tmp_path / "before", TREE | {module: f"print(1)\n{text}", "eval_pipeline/a.txt": "1"})
    for name, told, data in (("data", f"print(1)\n{text}", "2"), ("statement", text, "1")):
        now = written(tmp_path / name, TREE | {module: told, "eval_pipeline/a.txt": data, test: TREE[test]})
        assert f"{A}cut" in reached(before, now, {module})


def test_a_conftest_reaches_its_folder_and_a_file_that_nobody_names_everything(tmp_path: Path) -> None:
    before, now = (written(tmp_path / name, TREE) for name in ("before", "now"))
    assert "eval_pipeline_tests.a.conftest:" in reached(before, now, {"eval_pipeline_tests/a/conftest.py"})
    with pytest.raises(UnreadError, match="notes"):
        reached(before, now, {"notes/other.txt"})


def test_a_test_starts_at_its_function_and_fixtures(request: pytest.FixtureRequest, puppet: object) -> None:
    found = starts_of(request.node)
    own = "eval_pipeline_tests.project.test_reach:test_a_test_starts_at_its_function_and_fixtures"
    assert {own, "eval_pipeline_tests.conftest:puppet"} <= found
    assert "eval_pipeline_tests.conftest:signal_handlers" not in found, "every test has it"
    assert "eval_pipeline_tests.project.conftest:" in found


def test_the_base_is_where_main_was_left_or_what_everything_ran_at(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        return subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    def committed(files: dict[str, str]) -> str:
        written(tmp_path, files)
        git("add", "-A")
        git("commit", "-qm", "more")
        return git("rev-parse", "HEAD").strip()

    def found() -> Reach:
        return reach("auto", tmp_path)

    core, costs = "eval_pipeline/core.py", "eval_pipeline_tests/costs.json"
    git("init", "-q")
    first = committed(TREE)
    assert found() == Reach("everything runs: costs.json names no commit at which everything ran")
    committed({costs: json.dumps({"commit": "0" * 40})})
    assert found().places is None
    committed({costs: json.dumps({"commit": first}), core: TREE[core].replace("3", "4")})
    of_main = found()
    assert first[:10] in of_main.told
    assert of_main.places is not None
    assert f"{A}cut" in of_main.places
    git("switch", "-qc", "branch")
    committed({"eval_pipeline/view/page.py": "def page(): return 1\n"})
    of_branch = found()
    assert of_branch.places is not None
    assert f"{A}page" in of_branch.places
    assert f"{A}cut" not in of_branch.places
    assert reach("nobody", tmp_path) == Reach("everything runs: git knows no commit nobody")
    written(tmp_path, {"Makefile": ""})
    assert found().places is None
    assert "Makefile" in found().told
