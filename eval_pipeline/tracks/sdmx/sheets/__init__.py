"""Sheets of the workbook that suites of this track have first."""
