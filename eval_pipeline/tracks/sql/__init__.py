"""Track `sql`: text to SQL."""
