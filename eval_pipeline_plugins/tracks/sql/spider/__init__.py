"""Queries as Spider's evaluator reads them, compared clause by clause."""
