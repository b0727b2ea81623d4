"""Cases: how their files are read, their documents and gold, and doubts about it."""
