"""What no schedule can be better than: areas, prices, linear programs, inequalities, branching, few jobs settled."""
