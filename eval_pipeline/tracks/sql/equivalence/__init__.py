"""Whether two queries mean the same: evidence before opinion (docs/sql-equivalence.md)."""

from eval_pipeline.tracks.sql.equivalence.ladder import Equivalence, check
from eval_pipeline.tracks.sql.equivalence.text import identical

__all__ = ["Equivalence", "check", "identical"]
