"""What every kind of test shares: the components plugin."""

pytest_plugins = ["tests.components"]
