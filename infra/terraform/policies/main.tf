# Who may do what in the bucket, as values: no resource, no provider. So this is evaluated, not only
# read, on a machine without AWS (policies.tftest.hcl, tests/infra).

locals {
  bucket_arn = "arn:${var.partition}:s3:::${var.bucket_name}"
  # every object of the log stands below <prefix>/<shard>/ (tiered_storage/backends/location.py)
  root = join("/", compact([var.bucket_prefix, tostring(var.shard)]))
  log  = "${local.bucket_arn}/${local.root}"

  # what brokers delete: below a floor, old checkpoints and floors, probes (tiered_storage/keys.py).
  # The cluster's identity and the claims of its epochs are for ever.
  deleted_kinds = ["checkpoints", "floors", "log", "manifests", "probes", "segments", "writers"]
  kept_for_ever = ["${local.log}/cluster.json", "${local.log}/epochs/*"]

  # Keys are listed and looked for without a prefix in the request's context (a HEAD of what is not
  # there answers 404 only to who may list), so the bucket has to be the log's own.
  list = {
    Sid      = "List"
    Effect   = "Allow"
    Action   = ["s3:ListBucket"]
    Resource = [local.bucket_arn]
  }
  read = {
    Sid      = "Read"
    Effect   = "Allow"
    Action   = ["s3:GetObject"]
    Resource = ["${local.log}/*"]
  }
  create = {
    Sid      = "Create"
    Effect   = "Allow"
    Action   = ["s3:PutObject"]
    Resource = ["${local.log}/*"]
  }
  delete = {
    Sid      = "DeleteWhatIsOver"
    Effect   = "Allow"
    Action   = ["s3:DeleteObject"]
    Resource = [for kind in local.deleted_kinds : "${local.log}/${kind}/*"]
  }
  encrypt = [for key in var.kms_key_arn[*] : {
    Sid      = "Encrypt"
    Effect   = "Allow"
    Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
    Resource = [key]
  }]
  decrypt = [for key in var.kms_key_arn[*] : {
    Sid      = "Decrypt"
    Effect   = "Allow"
    Action   = ["kms:Decrypt"]
    Resource = [key]
  }]

  lake_arn = "arn:${var.partition}:s3:::${coalesce(var.lake_bucket_name, "none")}"
  lake     = join("/", compact([local.lake_arn, var.lake_prefix]))
  lake_statements = [
    {
      Sid      = "ListLake"
      Effect   = "Allow"
      Action   = ["s3:ListBucket", "s3:ListBucketMultipartUploads"]
      Resource = [local.lake_arn]
    },
    {
      # s3a uploads large files in parts, and removes what it staged
      Sid    = "WriteLake"
      Effect = "Allow"
      Action = [
        "s3:AbortMultipartUpload",
        "s3:DeleteObject",
        "s3:GetObject",
        "s3:ListMultipartUploadParts",
        "s3:PutObject",
      ]
      Resource = ["${local.lake}/*"]
    },
  ]
}

locals {
  over_tls = {
    Sid       = "OnlyOverTls"
    Effect    = "Deny"
    Principal = "*"
    Action    = ["s3:*"]
    Resource  = [local.bucket_arn, "${local.bucket_arn}/*"]
    Condition = { Bool = { "aws:SecureTransport" = "false" } }
  }
  # Without `If-None-Match: *` a PUT could replace an object of the log. Uploads in parts and copies
  # carry no such header and are refused with it: the log is written by single PUTs alone.
  create_only = {
    Sid       = "OnlyCreate"
    Effect    = "Deny"
    Principal = "*"
    Action    = ["s3:PutObject"]
    Resource  = ["${local.bucket_arn}/*"]
    Condition = { Null = { "s3:if-none-match" = "true" } }
  }
  deletes = {
    Sid       = "OnlyBrokersDelete"
    Effect    = "Deny"
    Principal = "*"
    Action    = ["s3:DeleteObject"]
    Resource  = ["${local.bucket_arn}/*"]
    Condition = { ArnNotEquals = { "aws:PrincipalArn" = var.deleting_role_arns } }
  }
  for_ever = {
    Sid       = "NobodyDeletesTheIdentity"
    Effect    = "Deny"
    Principal = "*"
    Action    = ["s3:DeleteObject"]
    Resource  = local.kept_for_ever
  }
  # noncurrent versions go by the lifecycle alone, which no bucket policy stops
  versions = {
    Sid       = "NobodyDeletesVersions"
    Effect    = "Deny"
    Principal = "*"
    Action    = ["s3:DeleteObjectVersion"]
    Resource  = ["${local.bucket_arn}/*"]
  }
  bucket_statements = concat(
    [for statement in [local.over_tls] : statement if var.require_tls],
    [local.create_only],
    [local.deletes],
    [local.for_ever],
    [local.versions],
  )
}
