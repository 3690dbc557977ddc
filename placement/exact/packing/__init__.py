"""Nodes filled with tasks: many at a time by rules, one by depth-first search, all by sums that come out exactly."""
