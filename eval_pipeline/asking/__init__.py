"""One call to a model: limits, retries, deadlines, budgets; its journal; batches of calls."""
