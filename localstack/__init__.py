"""S3 on this machine: MinIO and LocalStack as processes, without containers.

`localstack.servers` starts and ends them, `python -m localstack.run minio -- COMMAND` lends one to
a command. (LocalStack's own package of this name lives in a venv of its own.)
"""
