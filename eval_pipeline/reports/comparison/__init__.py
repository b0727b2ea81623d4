"""The report that compares all model versions of a suite: page, workbook, charts and flat files."""
