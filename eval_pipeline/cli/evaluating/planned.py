"""What `plan` says: one table of suites and model versions with a total, or the details of one of them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from eval_pipeline.core import shown

if TYPE_CHECKING:
    from eval_pipeline.operations.runs.planning import Bound, RunPlan

COLUMNS = ("suite", "model version", "turns", "in the\njournal", "to\nask", "calls\nat most", "cost\nat most")
COUNTS = {"counted": "", "sampled": ", counted on a sample", "estimated": ", estimated from the length"}
"""How input tokens were determined."""


def plan_lines(found: "RunPlan") -> Iterator[str]:
    """Yields lines on what a run of one suite with one model version would ask and would cost at most."""
    yield f"{found.suite} · {found.model_version}"
    yield from (f"  files     {note}" for note in found.notes)
    yield from _model_lines(found)
    if found.judge is not None and found.judge.calls:
        tokens = f"{found.judge.input_tokens:,} tokens in, {found.judge.output_tokens:,} out"
        yield f"  judge     {found.judge_name}: at most {_calls(found.judge.calls)}, {tokens}"
        yield "            " + _at_most(found.judge.usd)
    if found.judge_missing:
        yield f"  judge     {_judge_missing(found)}"
    if found.calls > found.generations.calls > 0:
        yield f"  in all    at most {_calls(found.calls)}, {_cost(found)}"


def _model_lines(found: "RunPlan") -> Iterator[str]:
    """Yields the lines of a plan on what the model is asked."""
    bound, recovery = found.generations, found.recovery
    if found.how == "recorded":
        yield f"  turns     {found.turns:,}, read from imported predictions: the model is not asked"
        return
    to_make = f"calls to make {bound.calls:,}" if found.attempts is None else f"attempts to make {found.attempts:,}"
    yield f"  turns     {found.turns:,}, in the journal {found.journalled:,}, {to_make}"
    if found.attempts:
        yield f"  calls     {_agent_calls(found)}"
    if found.is_expected:
        yield from _application_lines(found)
        return
    if bound.calls:
        cache = f"; up to {shown.rate(found.cacheable)} from a cache" if found.cacheable else ""
        yield f"  input     {bound.input_tokens:,} tokens{COUNTS[found.how]}{cache}"
        if found.why:
            yield f"            not counted: {found.why}"
        yield f"  output    at most {bound.output_tokens:,} tokens"
        yield "  cost      " + _at_most(bound.usd)
    if recovery.calls:
        yield (
            f"  recovery  at most {_calls(recovery.calls)} more, {recovery.input_tokens:,} tokens in, "
            f"{recovery.output_tokens:,} out"
        )
        yield "            " + _at_most(recovery.usd)
    if found.open_batches:
        yield f"  batches   handed in before and open: {found.open_batches}; {_waiting(found.in_batches)}"


def _application_lines(found: "RunPlan") -> Iterator[str]:
    """Yields the lines of a plan for an application.

    It makes its own prompts, so only its recorded answers are known.
    """
    if found.answers:
        yield f"  expected  {_expected(found.generations)}, going by {found.answers:,} answers on record"
    else:
        yield (
            "  expected  unknown: the application makes its own prompt, or the agent asks as often as it needs, and no "
            "answer on record tells what it took"
        )
    if found.recovery.calls:
        known = f": {_expected(found.recovery)}" if found.answers else ""
        yield f"  recovery  at most {_calls(found.recovery.calls)} more{known}"


def _agent_calls(found: "RunPlan") -> str:
    """Says how many calls an agent makes, which asks as often as it needs within the limits of the cases."""
    most, each = f"at most {found.generations.calls:,} by the cases' limits", found.calls_each
    budget = "" if found.budget is None else f", and for at most {shown.dollars(found.budget)} by max_cost_usd"
    if each is None:
        return f"not known before: an agent asks as often as it needs; {most}{budget}"
    about = round(each * (found.attempts or 0))
    return f"about {about:,}, going by {shown.mean_count(each)} an attempt on record; {most}{budget}"


def _expected(bound: "Bound") -> str:
    tokens = [
        f"{'unknown' if count is None else shown.tokens(count)} tokens {way}"
        for count, way in ((bound.input_tokens, "in"), (bound.output_tokens, "out"))
    ]
    return ", ".join([*tokens, "dollars unknown" if bound.usd is None else shown.dollars(bound.usd)])


def _at_most(usd: float | None) -> str:
    if usd == 0:
        return "none: these calls have no price to pay"
    return (
        "unknown: the model has no price" if usd is None else f"at most {shown.dollars(usd)}, as if no cache were hit"
    )


def plan_table(plans: "Sequence[RunPlan]") -> Table:
    """Returns a line for each evaluation: its turns, how many the journal has, calls and cost at most; then all."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), show_footer=True)
    known, priced = sum(found.known_usd for found in plans), all(found.is_priced for found in plans)
    numbers = [[found.turns, found.journalled, found.to_ask, found.calls] for found in plans]
    total = [*map(shown.count, map(sum, zip(*numbers, strict=True))), _known(known, is_all=priced)]
    for name, foot in zip(COLUMNS, ["in all", "", *total], strict=True):
        table.add_column(name, foot, overflow="fold", justify="right" if name not in COLUMNS[:2] else "left")
    told = ""
    for found, counts in sorted(zip(plans, numbers, strict=True), key=lambda one: one[0].suite):
        suite, told = "" if found.suite == told else found.suite, found.suite
        table.add_row(escape(suite), escape(found.model_version), *map(shown.count, counts), _cost(found))
    return table


def remark_lines(plans: "Sequence[RunPlan]") -> Iterator[str]:
    """Yields what the table cannot say: how files were read, what a judge lacks, and where the details are."""
    yield from dict.fromkeys(f"{found.suite}: {note}" for found in plans for note in found.notes)
    yield from dict.fromkeys(f"{found.suite}: {_judge_missing(found)}" for found in plans if found.judge_missing)
    if expected := [found for found in plans if found.is_expected and found.calls]:
        names = ", ".join(dict.fromkeys(found.model_version for found in expected))
        yield f"expected, not at most, going by answers on record: {names}"
    yield "details: --suite and --model-version of one"


def _cost(found: "RunPlan") -> str:
    return _known(found.known_usd, is_all=found.is_priced)


def _known(usd: float, *, is_all: bool) -> str:
    """Formats a sum of which some parts may be unknown."""
    if is_all:
        return shown.dollars(usd)
    return f"{shown.dollars(usd)} + unknown" if usd else "unknown"


def _calls(number: int) -> str:
    return shown.counted(number, "call", "calls")


def _waiting(turns: int) -> str:
    return f"{shown.counted(turns, 'turn waits', 'turns wait')} for them"


def _judge_missing(found: "RunPlan") -> str:
    missing = "it decides which answers are correct, but cannot be asked"
    return f"{found.judge_name}: {missing}: {found.judge_missing}"
