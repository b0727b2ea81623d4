"""The data of one evaluation as files: flat tables, statistics and traces."""
