"""What queues are entitled to: their quotas or their shares of all there is, and plans that keep to these."""
