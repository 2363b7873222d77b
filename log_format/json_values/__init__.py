"""Compiled code that decodes the JSON objects of many records into columns at once."""
