"""A plan beside the facts: what each of its tasks is, where it lies, and what it takes, for all rules to look at."""
