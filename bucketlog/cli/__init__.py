"""The command line: thin translators from flags to the SDK, the embedded cluster and the bucket.

Modules here import nothing heavy at the top, so that `bucketlog --help` stays quick.
"""
