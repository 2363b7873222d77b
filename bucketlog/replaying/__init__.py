"""Replay: what a topic holds, straight from the bucket, in one process. No broker, no Spark."""
