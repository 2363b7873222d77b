"""The settings of a broker: `broker.BrokerSettings`, and one module for each group of settings."""
