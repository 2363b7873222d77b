"""The commit path: what waits, is reserved, written and published, and how clients are answered."""
