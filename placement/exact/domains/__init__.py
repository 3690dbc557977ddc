"""Where domains come first: tasks tied to one another in one, and tenants of which each has its own."""
