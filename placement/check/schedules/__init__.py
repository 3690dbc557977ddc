"""The judge of schedules: what the rules for plans say of every node at every moment, and the rules over time."""
