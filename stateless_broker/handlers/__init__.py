"""Thin translators between Kafka's messages and the broker's parts, one file a family of APIs."""
