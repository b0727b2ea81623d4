"""The workbook sheets that this track adds in front of the others."""
