"""What no schedule can be better than: areas, prices, linear programs, inequalities, and branching on ends."""
