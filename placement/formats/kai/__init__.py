"""KAI Scheduler: its objects and snapshots read, its bind requests written."""
