"""`bucketlog doctor`: what a log says, as digests that two logs can be compared by."""
