"""Encrypted topics: the seal of batches, data keys, and the keys that encrypt them."""
