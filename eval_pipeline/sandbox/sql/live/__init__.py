"""Queries on the servers of PostgreSQL, MySQL and MariaDB."""
