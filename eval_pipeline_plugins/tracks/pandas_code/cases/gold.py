"""Functions on the gold of a turn: checks, and forms as a response and as text."""

from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasGold
from eval_pipeline_plugins.tracks.pandas_code.cases.closed_answers import answers_text
from eval_pipeline_plugins.tracks.pandas_code.cases.dialect import pandas_response
from eval_pipeline_plugins.tracks.pandas_code.cases.expected import expected_result, reference_result
from eval_pipeline_plugins.tracks.pandas_code.cases.outputs import FIGURE, writing
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code, fenced
from eval_pipeline_plugins.tracks.pandas_code.results.reading import kept, result_text
from eval_pipeline_plugins.tracks.pandas_code.running.evidence import MATCH, judged
from eval_pipeline_plugins.tracks.pandas_code.running.execute import error_text

_TESTED = "(code that passes the tests)"


def gold_problem(gold: PandasGold) -> str | None:
    """Returns why the reference code is wrong: it does not run, or its result is not the one in the suite; else None.

    Raises:
        NoSandboxError: this machine cannot run it.
    """
    if gold.code is None:
        return None
    if gold.tests is not None:
        verdict, _, details = judged(gold, Code(gold.code), {})
        told = _first_line(str(details["message"]))
        return None if verdict == MATCH else f"the reference code does not pass its tests: {told}"
    result = reference_result(gold)
    if isinstance(result, SnippetFailed):
        return f"the reference code does not run: {_first_line(error_text(result))}"
    if result is not None and result["kind"] == FIGURE and not result["marks"]["rows"]:
        return "the reference code draws nothing"
    verdict, _, details = judged(gold, Code(gold.code), {"result": result})
    if verdict == MATCH:
        return None
    return f"the reference code's result is not the right one: {_first_line(str(details['message']))}"


def _first_line(message: str) -> str:
    return message.partition("\n")[0]


def gold_text(gold: PandasGold) -> str:
    """Returns what is expected as readable text: a result, or closed answers."""
    if gold.answers:
        return answers_text(gold.answers)
    if gold.tests is not None:
        return _TESTED
    expected = expected_result(gold)
    return f"({error_text(expected)})" if isinstance(expected, SnippetFailed) else result_text(expected)


def gold_result(gold: PandasGold) -> Json:
    """Returns the expected result as an attempt's result; None if answers or tests decide, or there is none."""
    expected = expected_result(gold)
    return None if expected is None or isinstance(expected, SnippetFailed) else kept(expected)


def gold_json(gold: PandasGold) -> Json:
    """Returns the gold as plain data."""
    compared = None if gold.contract == gold.context.options.compare else gold.contract.model_dump(mode="json")
    columns = None if gold.columns is None else list(gold.columns)
    further = {
        "template": gold.context.template,
        "output": gold.context.output,
        "compare": compared,
        "columns": columns,
    }
    return {
        **{name: told for name, told in further.items() if told is not None},
        "code": gold.code,
        "expected": gold.stored,
        "answers": dict(gold.answers),
        "tests": gold.tests,
        "ordered": list(gold.order_keys) or gold.ordered,
        "tables": {table.name: table.content_hash for table in gold.context.tables},
    }


def gold_response(gold: PandasGold) -> str:
    """Returns a right answer: the reference code, or else code that creates the result stored in the suite."""
    if gold.code is not None:
        return pandas_response(fenced(gold.code), gold.context)
    if gold.answers:
        return fenced(f"result = {answers_text(gold.answers)!r}")
    output = gold.context.output
    return fenced(f"result = {_written(gold.stored)}" + ("" if output is None else f"\n{writing(output)}"))


def _written(stored: Json) -> str:
    """Returns a stored result as Python code."""
    match stored["kind"]:
        case "frame":
            columns = {column["name"]: column["values"] for column in stored["columns"]}
            return f"pd.DataFrame({columns!r})"
        case "series":
            return f"pd.Series({stored['values']['values']!r})"
    return repr(_untagged(stored["value"]))


def _untagged(value: Json) -> Json:
    match value:
        case {"t": "dict", "v": pairs}:
            return {name: _untagged(one) for name, one in pairs}
        case {"t": "list", "v": items}:
            return [_untagged(one) for one in items]
    return value
