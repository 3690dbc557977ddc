"""Dynamic resource allocation: slices and claims read, allocations written."""
