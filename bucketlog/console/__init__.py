"""The console: pages about a log, from its bucket alone. Read-only."""
