# The bucket. What it promises is what the log promises (docs/bucket.md): here it is made to refuse
# any write that could replace an object, and deletes by anyone but the brokers.

data "aws_partition" "here" {}

module "policies" {
  source = "../policies"

  bucket_name        = var.bucket_name
  bucket_prefix      = var.bucket_prefix
  shard              = var.shard
  partition          = data.aws_partition.here.partition
  deleting_role_arns = var.deleting_role_arns
  kms_key_arn        = var.kms_key_arn
  require_tls        = var.require_tls
}

resource "aws_s3_bucket" "log" {
  # checkov:skip=CKV_AWS_144:one region by design; S3 keeps each object in three zones of it
  # checkov:skip=CKV2_AWS_62:nothing listens to the bucket: brokers learn of segments from each other
  # checkov:skip=CKV_AWS_18:server access logs of a log's every PUT cost more than they tell; data events of CloudTrail can be switched on outside
  # checkov:skip=CKV_AWS_145:SSE-KMS is the default; sse_kms = false is for stores without KMS
  bucket        = var.bucket_name
  force_destroy = var.force_destroy
}

resource "aws_s3_bucket_public_access_block" "log" {
  bucket = aws_s3_bucket.log.id

  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "log" {
  bucket = aws_s3_bucket.log.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "log" {
  bucket = aws_s3_bucket.log.id

  rule {
    # S3 asks KMS for a key of the bucket now and then, not for each object
    bucket_key_enabled = var.sse_kms

    apply_server_side_encryption_by_default {
      sse_algorithm     = var.sse_kms ? "aws:kms" : "AES256"
      kms_master_key_id = var.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_versioning" "log" {
  bucket = aws_s3_bucket.log.id

  versioning_configuration {
    status = "Enabled"
  }
}

# Brokers delete by themselves. Versions of what they deleted, and the markers left of it, go here;
# no rule looks at the age of an object of the log.
resource "aws_s3_bucket_lifecycle_configuration" "log" {
  bucket = aws_s3_bucket.log.id

  rule {
    id     = "deleted-objects"
    status = "Enabled"

    filter {}

    noncurrent_version_expiration {
      noncurrent_days = var.deleted_kept_days
    }

    expiration {
      expired_object_delete_marker = true
    }
  }

  rule {
    id     = "unfinished-uploads"
    status = "Enabled"

    filter {}

    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }

  depends_on = [aws_s3_bucket_versioning.log]
}

resource "aws_s3_bucket_policy" "log" {
  bucket = aws_s3_bucket.log.id
  policy = module.policies.bucket

  depends_on = [aws_s3_bucket_public_access_block.log]
}

resource "aws_s3_bucket_metric" "requests" {
  count = var.request_metrics ? 1 : 0

  bucket = aws_s3_bucket.log.id
  name   = "EntireBucket"
}

resource "aws_iam_policy" "reader" {
  name        = "${var.bucket_name}-reader"
  description = "Lists and reads the log in ${var.bucket_name}."
  policy      = module.policies.reader
}

resource "aws_iam_role" "reader" {
  count = length(var.reader_principal_arns) > 0 ? 1 : 0

  name = "${substr(var.bucket_name, 0, 57)}-reader" # 64 letters at most
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { AWS = var.reader_principal_arns }
    }]
  })
}

resource "aws_iam_role_policy_attachment" "reader" {
  count = length(aws_iam_role.reader)

  role       = aws_iam_role.reader[count.index].name
  policy_arn = aws_iam_policy.reader.arn
}
