"""Whether two queries mean the same: two queries and a schema in, a verdict and a counterexample out.

    schema = SqlSchema.from_ddl("CREATE TABLE emp (id INT PRIMARY KEY, sal INT)")
    found = check("SELECT id FROM emp WHERE sal >= 10", "SELECT id FROM emp WHERE sal > 10", schema)
    found.verdict, found.evidence["counterexample"]

`check` goes through several steps (the "rungs" of a ladder): equal texts, proofs, generated databases. It reports which
rung decided; `identical` is only the first rung. This package does not depend on any track. See
docs/sql-equivalence.md.
"""
