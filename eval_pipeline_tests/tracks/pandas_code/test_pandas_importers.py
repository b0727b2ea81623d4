"""DABench and PandasEval: real samples where they are there, small files of our own for what can be wrong."""

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.model import Case
from eval_pipeline.operations.imports.importing import import_suite
from eval_pipeline.suites.cases import read_suite
from eval_pipeline_plugins.data_sets.pandas_code.dabench import read_dabench, table_names
from eval_pipeline_plugins.tracks.pandas_code.cases.closed_answers import answers_text, asked_decimals
from eval_pipeline_tests import outside
from eval_pipeline_tests.support import Lab, built_once, surroundings
from eval_pipeline_tests.tracks.pandas_code.helpers import needs_sandbox, scores_of

DABENCH, PANDASEVAL = outside.PANDAS / "dabench", outside.PANDAS / "pandaseval" / "PandasEval_sample.jsonl"
needs_data = outside.needs(outside.PANDAS)

QUESTION = {
    "id": 1,
    "question": "Mean?",
    "format": "@mean[x] with two decimals",
    "file_name": "3 a.csv",
    "level": "easy",
}
LABEL = {"id": 1, "common_answers": [["mean", "2.00"]]}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A home with both samples imported."""
    lab = Lab.at(built_once(tmp_path_factory, "pandas-imports", _imported))
    with surroundings(lab):
        yield lab


def _imported(folder: Path) -> None:
    lab = Lab.at(folder)
    with surroundings(lab):
        import_suite(lab.workspace(), "dabench", DABENCH / "da-dev-questions.jsonl", "dabench", further=[DABENCH])
        made = import_suite(lab.workspace(), "pandaseval", PANDASEVAL, "pandaseval")
        (folder / "left_out.json").write_text(json.dumps(made.wrong_gold))


@pytest.fixture(scope="module")
def dabench(imported: Lab) -> tuple[Case, ...]:
    return _cases(imported, "dabench")


def _cases(imported: Lab, suite: str) -> tuple[Case, ...]:
    return read_suite(imported.workspace().suite(suite)).cases


def _moved(labels: Mapping[str, str], question: str, step: str) -> dict[str, str]:
    """Each number off by part of a unit in the last place that counts."""
    asked = asked_decimals(question)

    def other(label: str) -> str:
        try:
            number = Decimal(label)
        except ArithmeticError:
            return label if step < "1" else f"{label} not"
        exponent = number.as_tuple().exponent
        assert isinstance(exponent, int)
        decimals = min((count for count in asked if count >= -exponent), default=max(0, -exponent))
        return str(number + Decimal(step).scaleb(-decimals)) if decimals or step >= "1" else label

    return {name: other(label) for name, label in labels.items()}


WAYS: Mapping[str, tuple[Callable[[Mapping[str, str], str], Mapping[str, str]], float]] = {
    "listed": (lambda labels, _: labels, 1.0),
    "unrounded": (lambda labels, question: _moved(labels, question, "0.3"), 1.0),
    "perturbed": (lambda labels, question: _moved(labels, question, "1"), 0.0),
    "misnamed": (lambda labels, _: {f"{name}_": label for name, label in labels.items()}, 0.0),
    "missing": (lambda labels, _: dict(list(labels.items())[1:]), 0.0),
    "swapped": (
        lambda labels, _: dict(zip(labels, [*list(labels.values())[1:], next(iter(labels.values()))], strict=True)),
        0.0,
    ),
}


@needs_data
@needs_sandbox
@pytest.mark.parametrize("way", WAYS)
def test_reference_answers_of_dabench_as_predictions(dabench: tuple[Case, ...], way: str) -> None:
    cases, (change, expected) = dabench, WAYS[way]
    assert len(cases) == 71
    if way == "swapped":
        cases = tuple(case for case in cases if len(set(case.turns[0].gold.answers.values())) > 1)
        assert len(cases) > 20
    golds = [case.turns[0].gold for case in cases]
    texts = [answers_text(change(gold.answers, gold.question)) or "I cannot say: @nothing[]" for gold in golds]
    said = [(case, 0, [text]) for case, text in zip(cases, texts, strict=True)]
    names = ("correctness_score", "quality_score", "performance_score", "result_match")
    for text, found in zip(texts, scores_of(said, recorded=True), strict=True):
        assert [found[name] for name in names] == [expected, None, None, expected == 1.0], text


@needs_data
@needs_sandbox
def test_solutions_of_pandaseval_that_fail_today_are_listed_and_left_out(imported: Lab) -> None:
    left_out = json.loads((imported.home.root.parent / "left_out.json").read_text())
    cases = _cases(imported, "pandaseval")
    assert len(cases) + len(left_out) == 51
    assert len(left_out) >= 5
    assert any("has no attribute 'append'" in sentence for sentence in left_out)
    kept = {case.id for case in cases}
    assert not [sentence for sentence in left_out if sentence.split("/")[1].split("#")[0] in kept]


@needs_data
@needs_sandbox
def test_a_program_of_pandaseval_is_right_where_its_tests_pass(imported: Lab) -> None:
    case = next(case for case in _cases(imported, "pandaseval") if case.id == "pandaseval_40")
    right = "def get_mean_in_column(df, col_name):\n    return df[col_name].sum() / len(df)"
    texts = (right, right.replace("sum", "max"), "get_mean_in_column = None")
    assert [one["correctness_score"] for one in scores_of((case, 0, [text]) for text in texts)] == [1.0, 0.0, 0.0]


def _written(folder: Path, question: object = QUESTION, label: object = LABEL) -> tuple[Path, list[Path], Path]:
    (folder / "questions.jsonl").write_text(json.dumps(question))
    (folder / "labels.jsonl").write_text(json.dumps(label))
    (folder / "3 a.csv").write_text("a\n1\n3\n")
    made = folder / "made"
    made.mkdir()
    return folder / "questions.jsonl", [folder], made


def test_a_question_of_dabench_becomes_a_case(tmp_path: Path) -> None:
    source, given, made = _written(tmp_path)
    (raw,) = read_dabench(source, None, given, made)
    assert raw["tables"] == "table_3_a"
    assert (made / "tables" / "table_3_a.csv").read_text() == "a\n1\n3\n"
    (turn,) = raw["turns"]
    assert turn["question"] == "Mean?\n\nSet `result` to a text in this form:\n@mean[x] with two decimals"
    assert turn["answers"] == {"mean": "2.00"}
    assert raw["features"] == {"difficulty": "easy"}


@pytest.mark.parametrize(
    ("question", "label", "told"),
    [
        (QUESTION | {"id": 2}, LABEL, "2.id: has no label"),
        (QUESTION | {"file_name": "b.csv"}, LABEL, "1.file_name: there is no table b.csv"),
        ({"id": 1}, LABEL, "questions.jsonl:1: question: is missing"),
        (QUESTION, {"id": 1, "common_answers": []}, "labels.jsonl:1: common_answers"),
    ],
)
def test_what_is_wrong_with_dabench_is_named(tmp_path: Path, question: object, label: object, told: str) -> None:
    source, given, made = _written(tmp_path, question, label)
    with pytest.raises(InputError) as caught:
        list(read_dabench(source, None, given, made))
    assert told in str(caught.value)


def test_a_table_that_is_there_twice_is_named_with_its_places(tmp_path: Path) -> None:
    source, given, made = _written(tmp_path)
    assert list(read_dabench(source, None, [*given, *given], made))
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "3 a.csv").write_text("a\n5\n")
    with pytest.raises(InputError, match=r"there are several tables 3 a.csv \(.*below/3 a.csv\); give one of them"):
        list(read_dabench(source, None, given, tmp_path / "again"))


def test_tables_get_names_that_python_knows_and_each_its_own() -> None:
    files = ("DES=+2006261.csv", "3901.csv", "a-b.csv", "a b.csv", "a_b.csv", "a-b.csv", "class.csv")
    assert table_names(files) == {
        "DES=+2006261.csv": "DES_2006261",
        "3901.csv": "table_3901",
        "a-b.csv": "a_b",
        "a b.csv": "a_b_2",
        "a_b.csv": "a_b_3",
        "class.csv": "table_class",
    }
