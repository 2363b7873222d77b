"""Who a client is: SASL mechanisms, and the credentials that they check."""
