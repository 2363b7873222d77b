"""Where the objects live: one module a store, all behind the verbs of `tiered_storage.bucket`."""
