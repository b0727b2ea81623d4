from pathlib import Path

from eval_pipeline.store import snapshot
from eval_pipeline.store.schemas import Column, Table
from eval_pipeline_tests.store.samples import key_of


def test_only_tables_of_many_short_rows_get_large_row_groups() -> None:
    """Never a shared one, or one that says which rows of it are used: that one must be there before it."""
    many, few = snapshot._MANY_ROWS, snapshot._MANY_ROWS - 1
    word, text = Column("word", "VARCHAR", "A word."), Column("text", "VARCHAR", "A long text.", long=True)
    used = Table("used", "Used.", (word,), key="shared", unique="word", referenced_by="users")

    def change(table: Table, rows: int) -> snapshot.Change:
        key = key_of()
        return snapshot.Change(table, key, (snapshot.SourceFile(table, "", key, "", Path(), "", rows),), ())

    changes = [
        change(Table("narrow", "Many short rows.", (word,)), many),
        change(Table("small", "Few short rows.", (word,)), few),
        change(Table("long", "Many long rows.", (word, text)), many),
        change(Table("users", "Says which are used.", (word,)), many),
        change(used, many),
    ]
    assert snapshot._with_many_short_rows(changes) == {"narrow"}
    assert snapshot._with_many_short_rows([*changes[:1], *changes[3:4]]) == {"narrow", "users"}
