"""The live brokers of a cluster: who they are, what they lead, and how they notice an end."""
