"""Charts and files as results: what code is asked for, and how its result is found."""

import re

FIGURE = "figure"
FORMATS = (".csv", ".tsv", ".json", ".jsonl", ".xlsx", ".parquet", ".txt")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


def output_problem(output: str) -> str | None:
    """Returns what is wrong with the name of an output; None if nothing is."""
    if output == FIGURE or (_NAME.fullmatch(output) and output.lower().endswith(FORMATS)):
        return None
    return f"must be '{FIGURE}', or a file name without a folder that ends with {', '.join(FORMATS)}; found '{output}'"


def output_request(output: str) -> str:
    """Returns a sentence for the prompt."""
    if output == FIGURE:
        return "Draw the chart with matplotlib, and set `result` to the figure."
    return f"Write the answer to the file `{output}` in the working directory; `result` need not be set."


def with_output(code: str, output: str) -> str:
    """Returns code whose `result` is the chart that it draws, or the content of the file that it writes."""
    if output == FIGURE:
        return f"{code}\nfrom inside.outputs import drawn as _drawn\nresult = _drawn(globals().get('result'))"
    return f"{code}\nfrom inside.outputs import written as _written\nresult = _written({output!r})"


def writing(output: str) -> str:
    """Returns code that writes `result` to a file."""
    return _WRITERS[output[output.rindex(".") :].lower()].format(repr(output))


_AS_JSON = "result.to_json(orient='records') if isinstance(result, pd.DataFrame) else json.dumps(result)"
_WRITERS = {
    ".csv": "result.to_csv({}, index=False)",
    ".tsv": "result.to_csv({}, index=False, sep='\\t')",
    ".parquet": "result.to_parquet({})",
    ".jsonl": "result.to_json({}, orient='records', lines=True)",
    ".xlsx": "result.to_excel({}, index=False)",
    ".json": f"import json\nopen({{}}, 'w').write({_AS_JSON})",
    ".txt": "open({}, 'w').write(result)",
}
