"""The rights that tell an API of administrators."""

from bucketlog.metadata.acl_bindings import AclOperation

ADMINISTRATIVE_OPERATIONS = frozenset(
    {
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.ALTER_CONFIGS,
        AclOperation.CLUSTER_ACTION,
        AclOperation.CREATE_TOKENS,
    }
)
