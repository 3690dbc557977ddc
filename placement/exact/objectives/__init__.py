"""What objectives are to the methods: fixed by counts of tasks, by what nodes are left like, or by nothing at all."""
