"""What a database of PostgreSQL has beside its rows: how tables are defined, indexes, triggers, views and the like."""

from .child import Told
from .postgres_client import GivenRow, PostgresClient

_SCHEMAS = "n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"
_IN = "CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END ||"
_OF_TABLES = f"pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND {_SCHEMAS}"
_NOT_OF_EXTENSIONS = "NOT EXISTS (SELECT FROM pg_depend e WHERE e.objid = {} AND e.deptype = 'e')"
_TABLES = "c.relkind IN ('r', 'p', 'f')"
_QUERY = f"""
SET search_path TO pg_catalog;
SELECT 'table', '', {_IN} c.relname, '', '' FROM {_OF_TABLES} WHERE {_TABLES}
UNION ALL
SELECT 'column', '', {_IN} c.relname, a.attname, told.fact FROM {_OF_TABLES}
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum,
    unnest(ARRAY['type ' || format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'not null' END,
        'default ' || pg_get_expr(d.adbin, d.adrelid), 'identity ' || nullif(a.attidentity::text, ''),
        'generated ' || nullif(a.attgenerated::text, '')]) AS told (fact)
    WHERE {_TABLES} AND told.fact IS NOT NULL
UNION ALL
SELECT 'constraint', '', {_IN} c.relname, '', pg_get_constraintdef(k.oid) FROM {_OF_TABLES}
    JOIN pg_constraint k ON k.conrelid = c.oid WHERE k.contype IN ('c', 'f', 'p', 'u', 'x')
UNION ALL
SELECT 'constraint', '', {_IN} c.relname, '', 'row level security ' || c.relforcerowsecurity FROM {_OF_TABLES}
    WHERE c.relrowsecurity OR c.relforcerowsecurity
UNION ALL
SELECT CASE WHEN i.indisunique THEN 'unique index' ELSE 'index' END,
    split_part(replace(pg_get_indexdef(i.indexrelid), quote_ident(x.relname) || ' ON ', chr(1)), chr(1), 2),
    {_IN} c.relname, '', '' FROM {_OF_TABLES} JOIN pg_index i ON i.indrelid = c.oid
    JOIN pg_class x ON x.oid = i.indexrelid
    WHERE NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
UNION ALL
SELECT 'trigger', t.tgname || ' on ' || c.relname, {_IN} c.relname, '',
    pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text
    FROM {_OF_TABLES} JOIN pg_trigger t ON t.tgrelid = c.oid WHERE NOT t.tgisinternal
UNION ALL
SELECT 'rule', r.rulename || ' on ' || c.relname, {_IN} c.relname, '', pg_get_ruledef(r.oid)
    FROM {_OF_TABLES} JOIN pg_rewrite r ON r.ev_class = c.oid WHERE r.rulename <> '_RETURN'
UNION ALL
SELECT 'policy', p.polname || ' on ' || c.relname, {_IN} c.relname, '', concat_ws(' ', p.polcmd, p.polpermissive,
    p.polroles::text, pg_get_expr(p.polqual, c.oid), '/', pg_get_expr(p.polwithcheck, c.oid))
    FROM {_OF_TABLES} JOIN pg_policy p ON p.polrelid = c.oid
UNION ALL
SELECT 'view', {_IN} c.relname, {_IN} c.relname, '', c.relkind::text || pg_get_viewdef(c.oid) FROM {_OF_TABLES}
    WHERE c.relkind IN ('v', 'm')
UNION ALL
SELECT 'sequence', {_IN} c.relname, '', '', concat_ws(' ', s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmin,
    s.seqmax, s.seqcycle) FROM {_OF_TABLES} JOIN pg_sequence s ON s.seqrelid = c.oid
    WHERE NOT EXISTS (SELECT FROM pg_depend o WHERE o.objid = c.oid AND o.deptype IN ('a', 'i') AND o.refobjsubid > 0)
UNION ALL
SELECT 'function', {_IN} p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', '', '',
    CASE WHEN p.prokind IN ('f', 'p') THEN pg_get_functiondef(p.oid) ELSE p.prokind::text END
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace AND {_SCHEMAS}
    WHERE {_NOT_OF_EXTENSIONS.format("p.oid")}
UNION ALL
SELECT 'type', {_IN} y.typname, '', '', concat_ws(' ', y.typtype, format_type(nullif(y.typbasetype, 0), y.typtypmod),
    (SELECT string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = y.oid),
    (SELECT string_agg(pg_get_constraintdef(k.oid), ', ' ORDER BY k.conname) FROM pg_constraint k
        WHERE k.contypid = y.oid))
    FROM pg_type y JOIN pg_namespace n ON n.oid = y.typnamespace AND {_SCHEMAS}
    WHERE y.typtype IN ('e', 'd', 'r') AND {_NOT_OF_EXTENSIONS.format("y.oid")}
UNION ALL
SELECT 'schema', n.nspname, '', '', '' FROM pg_namespace n WHERE {_SCHEMAS} AND n.nspname <> 'public'
UNION ALL
SELECT 'extension', x.extname, '', '', x.extversion FROM pg_extension x WHERE x.extname <> 'plpgsql'
ORDER BY 1, 2, 3, 4, 5
"""


def objects(client: PostgresClient) -> list[Told]:
    """Returns what a database has beside its rows, as `looking` tells it of others.

    What belongs to a constraint, or to a column (the sequence of a `serial`), is told with the table alone.
    """
    listed: list[GivenRow] = []
    client.run(_QUERY, lambda rows, found: listed.extend(found))
    facts: dict[str, list[list[str]]] = {}
    found: list[Told] = []
    for kind, name, of, about, told in ([cell or "" for cell in row] for row in listed):
        if kind in ("table", "column", "constraint"):
            own = facts.setdefault(of, [])
            own += [] if kind == "table" else [[kind, about, told]]
        else:
            found.append({"kind": kind, "name": f"on {name}" if "index" in kind else name, "of": of, "told": told})
    return [*found, *({"kind": "table", "name": of, "of": of, "told": sorted(own)} for of, own in facts.items())]
