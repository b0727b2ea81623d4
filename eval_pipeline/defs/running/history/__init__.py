"""What Dagster has recorded and is no longer to show."""
