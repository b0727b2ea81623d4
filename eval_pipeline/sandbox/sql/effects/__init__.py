"""Runs scripts that change data on private copies of databases, and tells what is different afterwards."""
