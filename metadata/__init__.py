"""Facts and the sequencer: the fold, the view, topics, epochs, Redis."""
