"""Postgres as the place of state that several hosts share: `EVAL_DATABASE_URL` (docs/scale.md)."""
