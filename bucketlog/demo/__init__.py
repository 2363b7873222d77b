"""The main job on real data: every flight that left New York in 2013, there and back."""
