"""What the tests share."""

pytest_plugins = ["bucketlog.testing"]
