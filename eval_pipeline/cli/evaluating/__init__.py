"""Commands that evaluate: run, plan, dev, rescore, demo."""
