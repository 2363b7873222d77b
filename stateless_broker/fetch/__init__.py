"""The fetch path: the view's feed, catching up, and reading ranges from the bucket."""
