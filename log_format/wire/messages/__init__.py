"""Typed messages, a module an API. Written by `scripts/messages.py`: do not edit."""
