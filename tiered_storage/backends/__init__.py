"""Stores of objects: one module for each store, all behind the verbs of `tiered_storage.bucket`."""
