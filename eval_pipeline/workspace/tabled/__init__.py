"""The tables that tracks and plug-ins define, and rows on their way to the record."""
