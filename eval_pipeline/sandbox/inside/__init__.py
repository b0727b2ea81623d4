"""What runs inside the jail: standard library, numpy and pandas only, no import of the project."""
