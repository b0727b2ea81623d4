"""Every response, kept on disk before anything uses it."""
