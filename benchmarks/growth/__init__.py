"""How a night grows: a simulator of many evaluations on several machines."""
