"""Cases, their databases and their gold."""
