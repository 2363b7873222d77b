"""Identities of clients: SASL mechanisms, and the credentials that they check."""
