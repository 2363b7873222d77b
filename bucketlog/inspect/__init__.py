"""Commands that inspect a log: verification, garbage, comparison of two logs."""
