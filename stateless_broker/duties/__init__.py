"""Duties: background work for the whole cluster, each done by one broker at a time."""
