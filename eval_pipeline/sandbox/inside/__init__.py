"""The code that runs inside the jail. It uses only the standard library, numpy and pandas, not the project."""
