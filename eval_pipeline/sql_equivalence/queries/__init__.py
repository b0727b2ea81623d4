"""Two queries as trees: rewritten, made ready to run, and what makes their results change."""
