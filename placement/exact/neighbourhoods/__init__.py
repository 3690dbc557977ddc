"""Large-neighbourhood search: a few nodes and all that waits, solved again and again by an exact model."""
