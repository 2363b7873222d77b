"""The console beside a large log: many topics, groups and objects, and a writer that continues.

The log is made in memory and copied to a folder. A checkpoint covers most of its segments.
"""
