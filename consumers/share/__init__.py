"""Share groups (KIP-932): members, share-partitions, sessions."""
