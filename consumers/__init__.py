"""Consumer groups, committed offsets, coordinators: pure state machines and their Redis store."""
