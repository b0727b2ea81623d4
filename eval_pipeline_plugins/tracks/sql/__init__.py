"""The track `sql`: text to SQL."""
