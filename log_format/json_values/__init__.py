"""JSON objects of many records, decoded into columns at once by compiled code."""
