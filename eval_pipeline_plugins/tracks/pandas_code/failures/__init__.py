"""Determines why an answer that ran is wrong: from its result, from the reference code, or by correcting its code."""
