"""The sheets of the workbook, one per module."""
