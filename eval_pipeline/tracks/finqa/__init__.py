"""The track `finqa`: conversational financial question answering (spec/finqa.md)."""
