"""What can be said of a text of SQL without running it."""
