"""Which rows and columns of two tables correspond to each other."""
