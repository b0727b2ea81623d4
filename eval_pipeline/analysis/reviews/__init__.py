"""Reviews by people: what is drawn for them, and what follows from what they say (docs/reviews.md)."""
