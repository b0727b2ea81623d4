"""Where reports are, what links to them, and how their folders are written."""
