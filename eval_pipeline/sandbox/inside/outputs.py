"""The result of code that draws a chart or writes a file instead of setting `result`. Runs inside the jail."""

import json
import os
from typing import Any

import pandas as pd

from .figures import figure_of

_READERS: dict[str, Any] = {
    ".csv": pd.read_csv,
    ".tsv": lambda path: pd.read_csv(path, sep="\t"),
    ".parquet": pd.read_parquet,
}


def drawn(result: object) -> object:
    """Returns the figure that code set as its result, else the last one that it drew, else the result as it is."""
    import matplotlib.pyplot as plt

    return plt.gcf() if figure_of(result) is None and plt.get_fignums() else result


def written(name: str) -> object:
    """Returns the content of a file in the working directory.

    A table (CSV, TSV, Parquet, Excel with one sheet, JSON that is a list of objects) is a frame; other JSON is a value,
    several sheets are a dict, and other files are their text.

    Raises:
        FileNotFoundError: the code did not write the file.
        ValueError: the file cannot be read as what its name says.
    """
    if not os.path.isfile(name):
        raise FileNotFoundError(f"the code did not write the file {name}")
    ending = os.path.splitext(name)[1].lower()
    try:
        return _content(name, ending)
    except Exception as error:  # readers raise exceptions of many types
        raise ValueError(f"the file {name} cannot be read as {ending or 'text'}: {error}") from error


def _content(name: str, ending: str) -> object:
    if ending in _READERS:
        return _READERS[ending](name)
    if ending == ".xlsx":
        sheets = pd.read_excel(name, sheet_name=None)
        return next(iter(sheets.values())) if len(sheets) == 1 else sheets
    with open(name, encoding="utf-8-sig") as file:
        if ending in (".jsonl", ".ndjson"):
            return pd.DataFrame([json.loads(line) for line in file if line.strip()])
        if ending != ".json":
            return file.read()
        told = json.load(file)
    is_table = isinstance(told, list) and told and all(isinstance(one, dict) for one in told)
    return pd.DataFrame(told) if is_table else told
