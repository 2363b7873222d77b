"""Rights of clients: decisions by ACLs, and the rights that each API needs."""
