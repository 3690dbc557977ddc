"""Jobs that wait: the reason that a plan gives for each, and what nodes could take without any work."""
