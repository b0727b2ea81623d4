"""What importers of data sets leave beside the cases, and where they took them from."""
