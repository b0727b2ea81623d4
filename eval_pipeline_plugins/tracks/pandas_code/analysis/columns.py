"""Finds the columns that code uses."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from eval_pipeline_plugins.tracks.pandas_code.analysis.names import AssignedNames
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import call_name, root

FRAME_NAMES = frozenset(
    """
    T abs add add_prefix add_suffix agg aggregate align all any apply asfreq asof assign astype at at_time attrs
    axes between_time bfill boxplot clip columns combine combine_first compare convert_dtypes copy corr corrwith
    count cov cummax cummin cumprod cumsum describe diff div divide dot drop drop_duplicates droplevel dropna
    dtypes duplicated empty eq equals eval ewm expanding explode ffill fillna filter first_valid_index flags
    floordiv from_arrow from_dict from_records ge get groupby gt head hist iat idxmax idxmin iloc index
    infer_objects info insert interpolate isetitem isin isna isnull items iterrows itertuples join keys kurt
    kurtosis last_valid_index le loc lt map mask max mean median melt memory_usage merge min mod mode mul
    multiply ndim ne nlargest notna notnull nsmallest nunique pct_change pipe pivot pivot_table plot pop pow
    prod product quantile query radd rank rdiv reindex reindex_like rename rename_axis reorder_levels replace
    resample reset_index rfloordiv rmod rmul rolling round rpow rsub rtruediv sample select select_dtypes sem
    set_axis set_flags set_index shape shift size skew sort_index sort_values sparse squeeze stack std style sub
    subtract sum swaplevel tail take to_clipboard to_csv to_dict to_excel to_feather to_hdf to_html to_iceberg
    to_json to_latex to_markdown to_numpy to_orc to_parquet to_period to_pickle to_records to_sql to_stata
    to_string to_timestamp to_xarray to_xml transform transpose truediv truncate tz_convert tz_localize unstack
    update value_counts values var where xs
    """.split()
) | {"str", "dt", "cat", "dtype"}


"""Public attributes of `pandas.DataFrame` (checked by a test), and the accessors of a Series."""


_PLACES: Mapping[str, Sequence[int]] = {
    "groupby": [0], "sort_values": [0], "nlargest": [1], "nsmallest": [1], "merge": [2, 3, 4], "join": [1],
    "pivot_table": [0, 1, 2], "melt": [0, 1], "set_index": [0], "drop": [0], "drop_duplicates": [0], "duplicated": [0],
    "explode": [0], "filter": [0], "get": [0], "pop": [0], "value_counts": [0], "agg": [0], "aggregate": [0],
    "transform": [0], "astype": [0], "fillna": [0], "replace": [0], "round": [0], "NamedAgg": [0], "xs": [0],
    "to_datetime": [], "Grouper": [0], "plot": [0, 1], "insert": [1], "isin": [],
}  # fmt: skip


"""For methods of frames, the positions of arguments that name columns; functions of pandas take the frame first."""


_KEYWORDS = frozenset(
    "by on left_on right_on left_by right_by columns index values subset id_vars value_vars key column items labels "
    "keys level x y".split()
)


_DICTS_BY_COLUMN = frozenset(
    {"agg", "aggregate", "transform", "astype", "fillna", "replace", "round", "rename", "isin"}
)


_AGGREGATES = frozenset({"agg", "aggregate"})


_BACKTICKS = re.compile(r"`([^`]+)`")


_IDENTIFIER = re.compile(r"(?<![\w@.'\"])[^\W\d]\w*")


_UNKNOWN = "__unknown__"


def touched_columns(tree: ast.AST, names: AssignedNames) -> frozenset[str]:
    """Returns names that code uses like columns: in subscripts, attributes, arguments, and texts of `query` and `eval`.

    Other names may be included, such as keys of a dict or attributes of a module; the caller compares them with the
    tables.
    """
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Subscript():
                found.update(_subscripted(node, names))
            case ast.Attribute(attr=name) if id(node) not in called and name not in FRAME_NAMES:
                start = root(node)
                if not (isinstance(start, ast.Name) and start.id in names.modules):
                    found.add(name)
            case ast.Call():
                found.update(column_arguments(node, names))
    return frozenset(found)


def _subscripted(node: ast.Subscript, names: AssignedNames) -> Iterator[str]:
    match node:
        case ast.Subscript(value=ast.Attribute(attr="loc" | "at"), slice=ast.Tuple(elts=[_, columns])):
            yield from names.texts(columns)
        case ast.Subscript(value=ast.Attribute(attr="loc" | "at" | "iloc" | "iat")):
            return  # labels and positions of rows
        case ast.Subscript(slice=columns):
            yield from names.texts(columns)


def column_arguments(call: ast.Call, names: AssignedNames) -> Iterator[str]:
    """Yields the columns named in the arguments of a call."""
    name = call_name(call) or ""
    if name in ("query", "eval"):
        for text in expression_texts(call, names):
            yield from expression_names(text)
        return
    if name == "assign":
        yield from (item.arg for item in call.keywords if item.arg is not None)
    places = _PLACES.get(name)
    if places is None and name not in _DICTS_BY_COLUMN and not isinstance(call.func, ast.Attribute):
        return
    shift = 1 if is_module_call(call, names) and name not in ("NamedAgg", "Grouper") else 0
    given = [call.args[place + shift] for place in places or () if place + shift < len(call.args)]
    for argument in given:
        # A text given to `agg` is a function, and one given to `fillna` is a value; only the keys of a dict are columns
        # there.
        if name not in _DICTS_BY_COLUMN or _is_dict(argument, names):
            yield from names.texts(argument)
    for item in call.keywords:
        if name in _AGGREGATES and isinstance(item.value, ast.Tuple):
            yield from names.texts(item.value.elts[0] if item.value.elts else None)
        elif item.arg in _KEYWORDS:
            yield from names.texts(item.value)


def _is_dict(node: ast.expr, names: AssignedNames) -> bool:
    match node:
        case ast.Dict():
            return True
        case ast.Name(id=name):
            return any(isinstance(value, ast.Dict) for value in names.variable(name))
    return False


def is_module_call(call: ast.Call, names: AssignedNames) -> bool:
    """Returns whether the call is of a module's function, such as `pd.merge`."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=module)):
            return module in names.modules
    return isinstance(call.func, ast.Name)


def expression_texts(call: ast.Call, names: AssignedNames) -> Iterator[str]:
    """Yields the texts of a `query` or `eval`; computed parts are replaced by an unknown name."""
    first = call.args[0] if call.args else next((item.value for item in call.keywords if item.arg == "expr"), None)
    values = [first]
    if isinstance(first, ast.Name):
        values = list(names.variable(first.id))
    for value in values:
        if isinstance(value, ast.JoinedStr):
            parts = [str(p.value) if isinstance(p, ast.Constant) else _UNKNOWN for p in value.values]
            yield "".join(parts)
        else:
            yield from names.texts(value)


def parsed_expression(text: str) -> tuple[ast.Module | None, dict[str, str]]:
    """Parses a text for `query`; also returns the names in backticks, by the placeholders put in their place."""
    quoted: dict[str, str] = {}

    def name(found: re.Match[str]) -> str:
        return quoted.setdefault(found[1], f"__quoted_{len(quoted)}__")

    plain = _BACKTICKS.sub(name, text).replace("@", "__local__").strip()
    try:
        tree = ast.parse(plain)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    return tree, {stand_in: held for held, stand_in in quoted.items()}


def expression_names(text: str) -> Iterator[str]:
    """Yields the names in a text for `query` or `eval`, without the snippet's own variables (`@n`)."""
    tree, quoted = parsed_expression(text)
    if tree is None:
        yield from _IDENTIFIER.findall(_BACKTICKS.sub("", text))
        yield from _BACKTICKS.findall(text)
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not node.id.startswith(("__local__", _UNKNOWN)):
            yield quoted.get(node.id, node.id)
