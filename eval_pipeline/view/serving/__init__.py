"""The workbench as an application, and the command that serves it."""
