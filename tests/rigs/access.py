"""Rights of requests that tests make by hand."""

from bucketlog.stateless_broker.authorization.authorizer import Access

EVERYTHING = Access.of("User:ANONYMOUS", "127.0.0.1", None)
