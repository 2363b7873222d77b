"""Composes a broker without sockets: the one place that combines the other rooms."""
