"""Where in its node a task lies: NUMA zones, NICs, CPUs, slots of MIG instances, and the paths between its cards."""
