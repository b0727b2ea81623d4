"""Reviews by people: drawing answers for them, and figures computed from their verdicts (docs/reviews.md)."""
