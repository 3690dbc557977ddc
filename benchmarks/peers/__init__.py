"""The optimiser beside its peers: OR-tools' CP-SAT and Meta's Rebalancer, on the same instances in the same run.

`python -m benchmarks.peers` runs it; see `__main__`. One file a peer, and each peer is optional: what is not installed
gives a row that says so.
"""
