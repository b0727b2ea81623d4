"""The track `finqa`: conversational financial question answering (docs/finqa.md)."""
