"""Epochs of the sequencer: joining, activating, working in one, and the way into the next."""
