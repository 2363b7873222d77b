"""The mechanics of the sequencer's epochs: joining, sealing, activating, and the end of one."""
