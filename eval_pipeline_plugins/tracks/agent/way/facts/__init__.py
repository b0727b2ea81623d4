"""What code says as plain facts, the same in every language."""
