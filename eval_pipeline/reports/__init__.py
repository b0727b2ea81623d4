"""Report files for one evaluation: tables, statistics, traces, a workbook and a page (docs/reports.md)."""
