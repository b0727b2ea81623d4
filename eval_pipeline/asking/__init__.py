"""Calls to models: limits, retries, deadlines, budgets, the journal of responses, and batches."""
