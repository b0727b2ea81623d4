"""Tasks that change data: scripts, the states that they leave, and how these are compared (docs/sql.md)."""
