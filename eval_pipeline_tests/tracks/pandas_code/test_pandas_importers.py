"""DABench and PandasEval: real samples where they are there, small files of our own for what can be wrong."""

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.model import Case
from eval_pipeline.operations.importing import import_suite
from eval_pipeline.suites import read_suite
from eval_pipeline.tracks.pandas_code.cases.closed_answers import answers_text, asked_decimals
from eval_pipeline.tracks.pandas_code.importers.dabench import read_dabench, table_names
from eval_pipeline_tests import outside
from eval_pipeline_tests.support import Lab, built_once, surroundings
from eval_pipeline_tests.tracks.pandas_code.helpers import needs_sandbox, scores

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
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
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


def _cases(home: Lab, suite: str) -> tuple[Case, ...]:
    return read_suite(home.workspace().suite(suite)).cases


def _perturbed(labels: Mapping[str, str], question: str) -> dict[str, str]:
    """Each number off by one unit in the last place that counts, each word another."""
    asked = asked_decimals(question)

    def other(label: str) -> str:
        try:
            number = Decimal(label)
        except ArithmeticError:
            return f"{label} not"
        exponent = number.as_tuple().exponent
        assert isinstance(exponent, int)
        decimals = min((count for count in asked if count >= -exponent), default=max(0, -exponent))
        return str(number + Decimal(1).scaleb(-decimals))

    return {name: other(label) for name, label in labels.items()}


def _unrounded(labels: Mapping[str, str], question: str) -> dict[str, str]:
    """Each number that is asked for with decimals, a third of a unit off in the last place."""
    asked = asked_decimals(question)

    def longer(label: str) -> str:
        try:
            number = Decimal(label)
        except ArithmeticError:
            return label
        exponent = number.as_tuple().exponent
        assert isinstance(exponent, int)
        decimals = min((count for count in asked if count >= -exponent), default=max(0, -exponent))
        return str(number + Decimal("0.3").scaleb(-decimals)) if decimals else label

    return {name: longer(label) for name, label in labels.items()}


def _swapped(labels: Mapping[str, str], _: str) -> dict[str, str]:
    return dict(zip(labels, [*list(labels.values())[1:], next(iter(labels.values()))], strict=True))


def _misnamed(labels: Mapping[str, str], _: str) -> dict[str, str]:
    return {f"{name}_": label for name, label in labels.items()}


def _missing(labels: Mapping[str, str], _: str) -> dict[str, str]:
    return dict(list(labels.items())[1:])


WAYS: tuple[tuple[Callable[[Mapping[str, str], str], dict[str, str]], float], ...] = (
    (lambda labels, _: dict(labels), 1.0),
    (_unrounded, 1.0),
    (_perturbed, 0.0),
    (_misnamed, 0.0),
    (_missing, 0.0),
)


@needs_data
@needs_sandbox
@pytest.mark.parametrize(("change", "expected"), WAYS, ids=["listed", "unrounded", "perturbed", "misnamed", "missing"])
def test_reference_answers_of_dabench_as_predictions(
    home: Lab, change: Callable[[Mapping[str, str], str], dict[str, str]], expected: float
) -> None:
    cases = _cases(home, "dabench")
    assert len(cases) == 71
    for case in cases:
        gold = case.turns[0].gold
        text = answers_text(change(gold.answers, gold.question)) or "I cannot say: @nothing[]"
        found = scores(case, text, recorded=True)
        assert found["correctness_score"] == expected, (case.id, text)
        assert found["quality_score"] is None
        assert found["performance_score"] is None
        assert found["result_match"] is (expected == 1.0)


@needs_data
@needs_sandbox
def test_swapped_answers_of_dabench_are_wrong_unless_they_are_the_same(home: Lab) -> None:
    tried = 0
    for case in _cases(home, "dabench"):
        gold = case.turns[0].gold
        swapped = _swapped(gold.answers, gold.question)
        if len(set(gold.answers.values())) > 1:
            tried += 1
            assert scores(case, answers_text(swapped), recorded=True)["correctness_score"] == 0.0, case.id
    assert tried > 20


@needs_data
@needs_sandbox
def test_solutions_of_pandaseval_that_fail_today_are_listed_and_left_out(home: Lab) -> None:
    left_out = json.loads((home.home.root.parent / "left_out.json").read_text())
    cases = _cases(home, "pandaseval")
    assert len(cases) + len(left_out) == 51
    assert len(left_out) >= 5
    assert any("has no attribute 'append'" in sentence for sentence in left_out)
    kept = {case.id for case in cases}
    assert not [sentence for sentence in left_out if sentence.split("/")[1].split("#")[0] in kept]


@needs_data
@needs_sandbox
def test_a_program_of_pandaseval_is_right_where_its_tests_pass(home: Lab) -> None:
    case = next(case for case in _cases(home, "pandaseval") if case.id == "pandaseval_40")
    right = "def get_mean_in_column(df, col_name):\n    return df[col_name].sum() / len(df)"
    assert scores(case, right)["correctness_score"] == 1.0
    assert scores(case, right.replace("sum", "max"))["correctness_score"] == 0.0
    assert scores(case, "get_mean_in_column = None")["correctness_score"] == 0.0


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
