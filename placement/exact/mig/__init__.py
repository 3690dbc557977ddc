"""MIG instances: counts on free slots, their cards and hosts, those that move, and all other jobs beside them."""
