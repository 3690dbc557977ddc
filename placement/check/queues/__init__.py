"""What queues may use: their quotas, and the share of all cards that is theirs."""
