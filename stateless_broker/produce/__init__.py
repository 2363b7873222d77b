"""The commit path: what waits, is reserved, written and published, and what clients are told."""
