"""Bytes and the bucket: the five-verb interface, its backends, and the segment format."""
