"""The bytes and nouns that all rooms share. This room imports no other."""
