"""Commands that show: compare, query, report, doctor, view, export."""
