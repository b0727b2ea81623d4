"""Cases of a suite of pandas questions: file format, tables, expected results and gold."""
