"""Statements, functions and tables that no read-only query needs, grouped by the harm they could do.

Names are in lower case and cover all dialects that sqlglot reads. To add a rule, add a name here.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from sqlglot import exp

STATEMENTS: tuple[type[exp.Expr], ...] = tuple(
    getattr(exp, name)
    for name in (
        # Statements that write, change definitions, or move data in and out.
        "DDL DML TruncateTable Alter Drop Undrop Comment LoadData Export Put Get MultitableInserts SwapTable Clone "
        "Refresh Cache Uncache Analyze Into Returning Directory DirectoryStage ListStage Stream "
        # Sessions, transactions, privileges, settings.
        "Transaction Commit Rollback Lock Set SetItem Use Grant Revoke Kill Pragma AlterSession Declare ConnectTo "
        "Disconnect Attach Detach Install NextValueFor "
        # Procedures, and everything that sqlglot keeps as text.
        "Command Execute ExecuteSql Block IfBlock CaseStatement WhileBlock LoopBlock RepeatBlock StoredProcedure "
        # Statements that show definitions instead of data.
        "Describe Show Summarize"
    ).split()
    if hasattr(exp, name)
)
"""Syntax tree nodes that do more than read data, wherever they are."""

_COMPUTES = """
    pg_typeof pg_size_pretty pg_column_size sys_guid sys_extract_utc inet_aton inet_ntoa inet6_aton inet6_ntoa
    json_query jsonb_path_query jsonb_path_query_array jsonb_path_query_first to_tsquery plainto_tsquery
    phraseto_tsquery websearch_to_tsquery tsquery_phrase url_encode url_decode urlencode urldecode
    parse_filename parse_dirname parse_dirpath parse_path path_join in_search_path
""".split()
"""Functions that only compute, although their names look suspicious."""

_FUNCTIONS: Mapping[str, str] = {
    "reads files or the network": """
        lsdir fsdir edit zipfile bulk bfilename getblobfromfile httpuritype dburitype xdburitype xmltype
        extractvalue updatexml openquery openrowset opendatasource external_query host net_func
        query_table query read_csv read_parquet st_read json_execute_serialized_sql from_substrait get_presigned_url
        java_method reflect reflect2 ts_stat input_file_name result_scan sniff_csv
    """,
    "sleeps or burns time": "sleep benchmark waitfor randomblob zeroblob sleepeachrow usleep",
    "reads or changes settings or the session": """
        version user current_user session_user system_user current_role database db schema catalog current_setting
        set_config getenv getvariable setvariable current_database current_schema current_schemas current_catalog
        connection_id host_name hostname app_name original_login serverproperty connectionproperty sessionproperty
        databasepropertyex db_name db_id schema_name object_id object_name object_definition col_name type_name user_id
        user_name userenv sys_context get_ddl nextval setval currval lastval last_insert_rowid last_insert_id row_count
        found_rows changes total_changes txid_current get_lock release_lock release_all_locks is_free_lock is_used_lock
        which_secret secret write_log create_sort_key add_parquet_key checkpoint force_checkpoint name_const getsetting
        getmacro serveruuid tcpport uptime rolname context_info session_context getuser gethostname current_query
        current_query_id current_transaction_id current_connection_id get_block_size fts3_tokenizer sqlite_log optimize
        setseed col_description obj_description shobj_description object_schema_name eventdata loginproperty
        row_security_active master_pos_wait source_pos_wait
    """,
    "runs programs": "system shell shellexec exec execute eval java_call invoke bash cmd popen spawn",
}
_WHY = {name: why for why, names in _FUNCTIONS.items() for name in names.split()}
_FAMILIES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), why)
    for pattern, why in (
        (r"(read|scan|sniff)_?(csv|parquet|json|ndjson|text|blob|xlsx|avro|duckdb|file)\w*", "reads files"),
        (r"\w*_scan(_\w+)?|parquet_\w+|(read|write|load|copy|save|open)_?(file|dir|text|url)\w*", "reads files"),
        (r"\w+_to_xml(schema)?(_and_xmlschema)?|(mysql|postgres|sqlite)_(query|attach|execute)", "reads files"),
        (r"(lo|dblink|utl|http|https|net|curl|ftp|smtp|url)_\w+|dblink|lo_?(im|ex)port", "reads the network or files"),
        (r"pg_\w+", "belongs to the server"),
        (r"(xp|sp|sys|dbms|fn|owa|apex|htp|ctxsys|ai|ml|cortex)_\w+|system\$\w+", "runs programs"),
        (r"\w*sleep\w*|\w*(wait|delay)_?for\w*|wait_\w+|benchmark_\w+", "sleeps"),
        (r"(duckdb|pragma|sqlite|gtid|suser|txid|ps|inet_(client|server))_\w+|has_\w+_privilege", "reads settings"),
        (r"current(?!_?(date|time|localtime))\w+|session_?\w+|is_\w*member|has_perms\w*", "reads the session"),
        (r"cron_?\w*schedul\w*|(un)?schedule(_in_database)?|(add|alter|run|delete)_job", "schedules statements"),
        (r"crosstab\w*|connectby|xpath_table|ts_rewrite|run_command_on_\w+|(query|table)_export_\w+", "runs SQL"),
        (r"lo(write|read)|(gin|brin|bt|gist|hash)_\w*(clean|summarize|check|metap|page)\w*", "changes what is stored"),
        (r"(postgres|mysql|oracle|file|multicorn)_fdw_\w+|get_raw_page|heap_page_\w+", "belongs to the server"),
        (r"loadfile|loadextension|\w*extension\w*|exec(ute)?_\w+|\w+_exec(ute)?|shell_\w+|\w+_shell", "runs programs"),
    )
)
_SUSPECT = frozenset(
    """
    sleep exec execute shell system command cmd file files directory http https socket import export secret secrets
    password credential credentials privilege privileges role roles config setting settings server env environment
    lock unlock attach detach backup restore dump kill shutdown remote dblink pragma extension token
    """.split()
)
"""Words that make an unknown function suspicious."""

DATA_FILES = ("computing_functions.txt", "functions_with_effects.txt")
FINITE = frozenset(("sqlite", "postgres"))
"""Dialects in which only functions on the engines' lists may be called.

In DuckDB, other functions are macros of the database, which only compute. The lists of other engines are not available.
"""
_CHAINS = "duckdb"
"""The dialect in which `x.f()` may mean `f(x)`."""
_QUALIFIERS = frozenset(("pg_catalog", "main", "safe", "hll_count", "keys", "builtin"))
"""Schemas and prefixes of the engine's own functions."""
_SEQUENCES = frozenset(("nextval", "currval"))

TABLE_FUNCTIONS = frozenset(
    """
    unnest range generate_series exploding_generate_series explode explode_outer posexplode posexplode_outer inline
    flatten json_each json_tree jsonb_each jsonb_each_text json_each_text json_array_elements
    json_array_elements_text jsonb_array_elements jsonb_array_elements_text json_object_keys jsonb_object_keys
    json_to_recordset jsonb_to_recordset json_populate_recordset jsonb_populate_recordset json_table openjson
    regexp_split_to_table regexp_matches string_to_table string_split strtok_split_to_table split_to_table
    generate_subscripts generate_date_array generate_timestamp_array repeat repeat_row sequence table values numbers
    stack
    """.split()
)
"""The only functions that may be used in place of a table; others could read anything."""

_SYSTEM_SCHEMAS = frozenset(
    "information_schema pg_catalog pg_toast pg_temp sys mysql performance_schema duckdb master msdb tempdb dba "
    "sqlite_master ctxsys mdsys system account_usage".split()
)
_SYSTEM_TABLES = re.compile(
    r"sqlite_(master|schema|temp_master|temp_schema|sequence|stat\d|dbpage|dbdata)|pg_[a-z_]+|duckdb_[a-z_]+|"
    r"pragma_[a-z_]+|dba_\w+|(all|user)_(tables|users|tab_columns|tab_privs|objects|source|views|constraints)|"
    r"sys(objects|columns|logins|users|databases|tables|ibm\w*)|v_?\$\w+|msysobjects|innodb_\w+|global_variables|"
    r"session_variables|sys_config|dbstat|(rdb|mon)\$\w+|syscat\w*"
)
_CREDENTIALS = re.compile(
    r"((user|admin|app|login|customer|employee|staff|account|system|service|db|stored|old|client|member)s?_)?"
    r"(credentials?|passwords?|passwd|secrets?|api_?keys?|auth_?tokens?|access_?tokens?|refresh_?tokens?|"
    r"private_?keys?|password_?hashes|login_?secrets?|session_?tokens?)(_(backup|bak|old|archive|copy))?"
)
_CREDENTIAL_COLUMNS = re.compile(
    r"((user|login|admin|db)_?)?pass|(\w+_)?(passwords?|passwd|passwort|pwd|pass_?hash|password_?(hash|salt)|pw_?hash|secret(_?key)?|api_?key|"
    r"(auth|access|refresh|session|reset|api|bearer)_?token|private_?key|credentials?|credit_?card(_?(number|no))?|"
    r"card_?number|cvv|ssn)"
)
_FILE = re.compile(
    r"(?is).*(://|[/\\*]).*|.*\.(csv|tsv|psv|parquet|json|jsonl|ndjson|xlsx?|db|sqlite3?|duckdb|txt|log|gz|zst|arrow|"
    r"feather|avro|orc|sql|ya?ml|env|conf|ini|pem|key)"
)
_DATA_FILE = re.compile(r"(?is).*\.(csv|tsv|parquet|jsonl|ndjson|json|xlsx)")
LOCKING_HINTS = frozenset({"TABLOCK", "TABLOCKX", "UPDLOCK", "XLOCK", "HOLDLOCK", "ROWLOCK", "PAGLOCK"})
"""Hints of T-SQL that lock data which others want to write."""


@cache
def computing_functions() -> frozenset[str]:
    """Returns the functions of DuckDB, SQLite and PostgreSQL that only compute, in lower case."""
    return frozenset((*_words_of(DATA_FILES[0]), *_COMPUTES))


@cache
def _with_effects() -> frozenset[str]:
    return frozenset(_words_of(DATA_FILES[1]))


def _words_of(file: str) -> list[str]:
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    return [word for line in text.splitlines() if not line.startswith("#") for word in line.split()]


def unknown_problem(name: str, dialect: str) -> str | None:
    """Returns why a function unknown to sqlglot must not be called in a dialect, or None if it may be called.

    If there is no list of all functions, only suspicious names are rejected, see `function_problem`.
    """
    lower = name.lower()
    listed = lower in computing_functions()
    if lower in _with_effects() or (dialect in FINITE and not listed):
        return "is none of the engine's that only compute"
    return None


def qualified_problem(qualifiers: Sequence[str], name: str, dialect: str, *, known: bool) -> str | None:
    """Returns why a function of a schema or package, such as `cron.schedule`, must not be called; None if it may be.

    Args:
        qualifiers: the names in front of the function's name.
        name: name of the function.
        dialect: sqlglot's name of the dialect.
        known: whether sqlglot knows the function.
    """
    if all(part.lower() in _QUALIFIERS for part in qualifiers):
        return None
    if dialect == _CHAINS and (known or name.lower() in computing_functions()):
        return None
    return "is not the engine's own"


def is_sequence_value(name: str) -> bool:
    """Returns whether `sequence.name` draws from a sequence, as written in Oracle and Snowflake."""
    return name.lower() in _SEQUENCES


def function_problem(name: str, *, known: bool = False) -> str | None:
    """Returns the forbidden effect that a function of that name could have; None if it only computes.

    Args:
        name: as written.
        known: whether sqlglot knows the function; unknown ones are suspicious if their name contains certain words.
    """
    lower = name.lower()
    if lower in _COMPUTES:
        return None
    if lower in _WHY:
        return _WHY[lower]
    family = next((why for pattern, why in _FAMILIES if pattern.fullmatch(lower)), None)
    if family is None and not known and not _SUSPECT.isdisjoint(_words(name)):
        return "is unknown, and by its name does more than compute"
    return family


def table_problem(qualifiers: tuple[str, ...], name: str) -> str | None:
    """Returns why a table must not be read: it belongs to the system, holds credentials, or is a file.

    Args:
        qualifiers: catalogue and schema, if given.
        name: name of the table.
    """
    # BigQuery's `project.dataset.INFORMATION_SCHEMA.TABLES` is parsed as one name with dots.
    *inner, lower = name.lower().split(".")
    above = {piece for part in qualifiers for piece in part.lower().split(".")}
    if not _SYSTEM_SCHEMAS.isdisjoint((*above, *inner)) or _SYSTEM_TABLES.fullmatch(lower):
        return "is a table of the database system"
    if _CREDENTIALS.fullmatch(lower) or _CREDENTIALS.fullmatch(name.lower()):
        return "holds credentials"
    # DuckDB treats `sales.csv` as a file even without quotes.
    whole = ".".join((*filter(None, qualifiers), name))
    is_file = any(_FILE.fullmatch(part) for part in (*qualifiers, name)) or _DATA_FILE.fullmatch(whole)
    return "is a file" if is_file else None


def is_credential_column(name: str) -> bool:
    """Returns whether a column of that name holds a password, a key or the number of a card."""
    return bool(_CREDENTIAL_COLUMNS.fullmatch(name.lower()))


def _words(name: str) -> list[str]:
    """Splits `sleepEachRow` or `sleep_each_row` into words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")
