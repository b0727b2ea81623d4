"""Access control for the local web servers: which requests may pass."""
