"""Sockets, frames and the dispatch of requests to handlers."""
