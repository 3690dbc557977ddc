"""What a card, a node or a domain may hold at a time: amounts, numbers of tasks, and tenants."""
