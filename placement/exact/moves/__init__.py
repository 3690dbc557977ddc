"""Placements made better by moving, exchanging and replacing placed tasks, without a model."""
