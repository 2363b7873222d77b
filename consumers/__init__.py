"""Consumer groups, committed offsets, coordinators: pure state machines and their Redis store.

`consumers.group` is the way in: it says how a group is driven and what the parts are.
"""
