"""Consumer groups and committed offsets: pure state machines, and the coordinator at their edge.

`consumers.group` is the way into the classic protocol's machine, `consumers.modern_group` into that
of the consumer protocol (KIP-848).
`consumers.coordinator` holds groups and stores them, `consumers.offsets` commits their offsets.
"""
