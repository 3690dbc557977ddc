"""Test cases of other schedulers, re-expressed as data, turned into snapshots; one file per scheduler."""
