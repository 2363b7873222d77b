# EMR Serverless on ARM, and a role for its jobs: it reads the log and writes the lake. Jobs read the
# bucket alone, no broker and no Redis, so the application stands in no VPC.

data "aws_caller_identity" "here" {}

data "aws_partition" "here" {}

data "aws_region" "here" {}

locals {
  partition = data.aws_partition.here.partition
  code_arn  = "arn:${local.partition}:s3:::${var.code_bucket_name}"
}

module "policies" {
  source = "../policies"

  bucket_name        = var.bucket_name
  bucket_prefix      = var.bucket_prefix
  shard              = var.shard
  partition          = local.partition
  deleting_role_arns = [aws_iam_role.job.arn] # of the bucket's policy, which is not used here
  kms_key_arn        = var.bucket_kms_key_arn
  lake_bucket_name   = var.lake_bucket_name
  lake_prefix        = var.lake_prefix
}

resource "aws_cloudwatch_log_group" "jobs" {
  # checkov:skip=CKV_AWS_338:how long logs are kept is the user's choice (log_retention_days)
  # checkov:skip=CKV_AWS_158:CloudWatch encrypts with its own key; a key of one's own is log_kms_key_arn
  name              = "/${var.name}/spark"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.log_kms_key_arn
}

resource "aws_iam_role" "job" {
  name = "${var.name}-spark"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "emr-serverless.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.here.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "log_and_lake" {
  name   = "log-and-lake"
  role   = aws_iam_role.job.id
  policy = module.policies.spark
}

resource "aws_iam_role_policy" "code_and_logs" {
  name = "code-and-logs"
  role = aws_iam_role.job.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "Code"
        Effect   = "Allow"
        Action   = ["s3:GetObject"]
        Resource = ["${local.code_arn}/*"]
      },
      {
        Sid      = "ListCode"
        Effect   = "Allow"
        Action   = ["s3:ListBucket"]
        Resource = [local.code_arn]
      },
      {
        Sid      = "FindLogGroups"
        Effect   = "Allow"
        Action   = ["logs:DescribeLogGroups"]
        Resource = ["arn:${local.partition}:logs:${data.aws_region.here.region}:${data.aws_caller_identity.here.account_id}:*"]
      },
      {
        Sid      = "Log"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
        Resource = ["${aws_cloudwatch_log_group.jobs.arn}:*"]
      },
    ]
  })
}

resource "aws_emrserverless_application" "this" {
  name          = var.name
  type          = "spark"
  release_label = var.release_label
  architecture  = "ARM64"

  auto_start_configuration {
    enabled = true
  }

  auto_stop_configuration {
    enabled              = true
    idle_timeout_minutes = var.idle_timeout_minutes
  }

  maximum_capacity {
    cpu    = "${var.cpu_max} vCPU"
    memory = "${var.memory_max_gb} GB"
  }
}
