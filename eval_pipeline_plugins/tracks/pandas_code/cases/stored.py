"""Reads an expected result that a suite has stored."""

from eval_pipeline.core.model import Json


def stored_result(expected: Json, *, is_table: bool = True) -> Json:
    """Converts an expected result from the suite's form to tagged plain data (`sandbox/inside/encode.py`).

    Args:
        expected: the result.
        is_table: whether lists by name are the columns of a table; in a JSON file they are what they are, and a list of
            objects is a table.
    """

    def column(name: str | None, values: list[Json]) -> Json:
        return {"name": name, "dtype": "object", "values": values}

    if not is_table and isinstance(expected, list) and expected and all(isinstance(one, dict) for one in expected):
        names = dict.fromkeys(name for one in expected for name in one)
        return stored_result({name: [one.get(name) for one in expected] for name in names})
    is_frame = isinstance(expected, dict) and expected and all(isinstance(values, list) for values in expected.values())
    if is_table and is_frame:
        rows = len(next(iter(expected.values())))
        index = [column(None, list(range(rows)))]
        columns = [column(name, values) for name, values in expected.items()]
        return {"kind": "frame", "columns": columns, "index": index, "rows": rows}
    if is_table and isinstance(expected, list):
        index = [column(None, list(range(len(expected))))]
        return {"kind": "series", "values": column(None, expected), "index": index}
    return {"kind": "value", "value": _tagged(expected)}


def _tagged(value: Json) -> Json:
    match value:
        case dict():
            return {"t": "dict", "v": [[name, _tagged(one)] for name, one in value.items()]}
        case list():
            return {"t": "list", "v": [_tagged(one) for one in value]}
    return value
