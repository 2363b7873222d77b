"""The live brokers of a cluster: who they are, what they lead, and how their end is noticed."""
