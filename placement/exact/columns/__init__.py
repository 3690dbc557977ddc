"""Column generation over what one node holds: the master, the contents that are priced, and bounds on all others."""
