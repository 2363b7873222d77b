"""The process of a broker: start and stop, sockets, HTTP endpoint, metrics, logging."""
