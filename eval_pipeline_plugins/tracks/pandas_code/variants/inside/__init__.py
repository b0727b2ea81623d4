"""The code that runs in the sandbox: makes variants of tables and runs code on them. Imports only pandas and numpy."""
