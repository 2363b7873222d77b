"""What a client may do: decisions by ACLs, and the rights that each API needs."""
