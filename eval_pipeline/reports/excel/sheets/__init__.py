"""The sheets of the workbook, one a file."""
