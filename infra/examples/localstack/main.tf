# The bucket and its policies on LocalStack, which has S3 and IAM, but in its free form no ECS,
# ElastiCache or load balancers. Brokers then run beside it (docs/brokers.md). LocalStack keeps
# bucket policies and does not obey them.

provider "aws" {
  region                      = "us-east-1"
  access_key                  = "test"
  secret_key                  = "test"
  s3_use_path_style           = true
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true

  endpoints {
    iam = var.endpoint
    s3  = var.endpoint
    sts = var.endpoint
  }
}

resource "aws_iam_role" "broker" {
  name = "bucketlog-broker"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "broker" {
  name   = "bucket"
  role   = aws_iam_role.broker.id
  policy = module.storage.broker_policy_json
}

module "storage" {
  source = "../../terraform/storage"

  bucket_name        = var.bucket_name
  deleting_role_arns = [aws_iam_role.broker.arn]
  require_tls        = false
  sse_kms            = false
  request_metrics    = false
  force_destroy      = true
}
