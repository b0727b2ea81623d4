"""Files for people: tables, statistics, traces and the workbook of one evaluation (docs/reports.md)."""
