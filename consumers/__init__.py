"""Consumer groups and committed offsets: pure state machines, and the coordinator at their edge.

`consumers.group` is the way into the machine: it says how a group is driven and what the parts are.
`consumers.coordinator` holds groups and stores them, `consumers.offsets` commits their offsets.
"""
