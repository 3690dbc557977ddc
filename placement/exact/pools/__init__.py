"""Nodes that are alike as one pool: bounds by column generation, whole counts, and the places these guide."""
