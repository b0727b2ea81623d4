"""`report.xlsx`: one file a sheet. openpyxl is imported inside functions, since it takes a third of a second."""
