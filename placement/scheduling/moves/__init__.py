"""Schedules made better by moving jobs in the order of a pass over counts of cards, here and in a process beside."""
