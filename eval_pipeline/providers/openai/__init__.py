"""Any OpenAI-compatible endpoint."""
