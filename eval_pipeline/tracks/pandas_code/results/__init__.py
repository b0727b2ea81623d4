"""Results of code: as values and tables, and whether two are equal."""
