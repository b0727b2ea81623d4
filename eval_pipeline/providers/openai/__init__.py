"""The provider `openai`: any OpenAI-compatible endpoint."""
