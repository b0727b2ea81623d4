"""The report of all model versions of a suite side by side: page, workbook, charts and flat files."""
