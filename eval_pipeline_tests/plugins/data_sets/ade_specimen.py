"""A task of the form of ADE-bench, written for tests: a project of two models, of which one has to be renamed."""

from pathlib import Path

import duckdb

TASK = """
task_id: shop001
status: ready
prompts:
  - key: base
    prompt: |-
      Rename the model doubled to twice.
  - key: hard
    prompt: Give doubled a better name (twice).
difficulty: easy
tags: [dbt]
test_setup: |-
  dbt deps
  dbt run --select twice
solution_seeds:
  - table_name: twice
    exclude_columns: [note]
variants:
- {db_type: snowflake, db_name: shop, project_type: dbt, project_name: shop, migration_directory: m}
- {db_type: duckdb, db_name: shop, project_type: dbt-fusion, project_name: shop}
- {db_type: duckdb, db_name: shop, project_type: dbt, project_name: shop}
"""
FILES = {
    "tasks/shop001/task.yaml": TASK,
    "tasks/shop001/setup.sh": "#!/bin/bash\ndbt deps\npatch -p1 --batch < /app/setup/changes.patch\n"
    '/scripts/run_sql.sh "$@" << SQL\nINSERT INTO orders VALUES (9, 90.5);\nSQL\n',
    "tasks/shop001/setup/changes.patch": "--- a/models/doubled.sql\n+++ b/models/doubled.sql\n@@ -1 +1 @@\n"
    "-select 1 as id\n+select id, amount * 2 as amount, 'x' as note from {{ source('main', 'orders') }}\n",
    "tasks/shop001/solution.sh": '#!/bin/bash\nHERE="$(dirname "$(readlink -f "${BASH_SOURCE}")")/solutions"\n'
    "rm models/doubled.sql\ncp $HERE/twice.sql models/twice.sql\ncat /sage/solutions/twice.sql > /dev/null\n",
    "tasks/shop001/solutions/twice.sql": "select id, amount * 2 as amount, 'y' as note "
    "from {{ source('main', 'orders') }}\n",
    "tasks/shop001/seeds/solution__twice.csv": "id,amount,note\n1,20.0,a\n2,40.0,b\n9,181,\n",
    "tasks/shop001/tests/AUTO_twice_equality.sql": "select 1\n",
    "tasks/shop001/tests/no_doubled.sql": "{% set old = load_relation(ref('twice')) %}\n"
    "select * from {{ ref('twice') }} where amount < 0\n",
    "tasks/shop001/tests/cloud.sql": "-- db: snowflake\nselect 1\n",
    "shared/projects/dbt/shop/dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: shop-duckdb\n"
    "model-paths: [models]\n",
    "shared/projects/dbt/shop/profiles.yml": "shop-duckdb:\n  target: dev\n  outputs:\n    dev:\n      type: duckdb\n"
    "      path: ./shop.duckdb\n      schema: main\n",
    "shared/projects/dbt/shop/models/doubled.sql": "select 1 as id\n",
    "shared/projects/dbt/shop/models/sources.yml": "version: 2\nsources:\n  - name: main\n    schema: main\n"
    "    tables:\n      - name: orders\n",
}


def write_ade(folder: Path) -> Path:
    """Writes the folders `tasks` and `shared`; returns the task's."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    database = folder / "shared" / "databases" / "duckdb" / "shop.duckdb"
    database.parent.mkdir(parents=True)
    with duckdb.connect(str(database)) as opened:
        opened.execute("CREATE TABLE orders AS SELECT * FROM (VALUES (1, 10.0), (2, 20.0)) AS t(id, amount)")
    return folder / "tasks" / "shop001"
