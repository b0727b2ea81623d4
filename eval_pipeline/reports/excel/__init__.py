"""Writes `report.xlsx`, with one module per sheet.

openpyxl is imported inside functions, as importing it takes 0.3 s.
"""
