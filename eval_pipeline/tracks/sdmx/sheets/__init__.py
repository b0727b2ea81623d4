"""Sheets of the workbook that suites of this track have first, as spec/sdmx.md lays them out."""
