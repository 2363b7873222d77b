# Three zones, two brokers in each at least, a sequencer with a replica, keys of one's own, alarms,
# and a place for Spark's jobs.

provider "aws" {
  region = var.region

  default_tags {
    tags = { Application = "bucketlog", Environment = var.name }
  }
}

provider "random" {}

data "aws_caller_identity" "here" {}

data "aws_partition" "here" {}

locals {
  account = "arn:${data.aws_partition.here.partition}:iam::${data.aws_caller_identity.here.account_id}:root"
}

resource "aws_kms_key" "this" {
  description             = "The bucket, the secrets and the logs of ${var.name}."
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "RolesOfThisAccountByTheirPolicies"
        Effect    = "Allow"
        Principal = { AWS = local.account }
        Action    = "kms:*"
        Resource  = "*"
      },
      {
        Sid       = "Logs"
        Effect    = "Allow"
        Principal = { Service = "logs.${var.region}.amazonaws.com" }
        Action    = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]
        Resource  = "*"
        Condition = {
          ArnLike = {
            "kms:EncryptionContext:aws:logs:arn" = "arn:${data.aws_partition.here.partition}:logs:${var.region}:${data.aws_caller_identity.here.account_id}:*"
          }
        }
      },
      {
        Sid       = "AlarmsToTheirTopic"
        Effect    = "Allow"
        Principal = { Service = "cloudwatch.amazonaws.com" }
        Action    = ["kms:Decrypt", "kms:GenerateDataKey*"]
        Resource  = "*"
        Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.here.account_id } }
      },
    ]
  })
}

resource "aws_sns_topic" "alarms" {
  name              = "${var.name}-alarms"
  kms_master_key_id = aws_kms_key.this.id
}

module "network" {
  source = "../../terraform/network"

  name                    = var.name
  zones                   = var.zones
  cidr                    = var.cidr
  flow_log_retention_days = 30
  kms_key_arn             = aws_kms_key.this.arn
}

module "storage" {
  source = "../../terraform/storage"

  bucket_name           = var.bucket_name
  bucket_prefix         = var.bucket_prefix
  deleting_role_arns    = [module.broker.role_arn]
  reader_principal_arns = var.reader_principal_arns
  kms_key_arn           = aws_kms_key.this.arn
}

module "metadata" {
  source = "../../terraform/metadata"

  name                     = var.name
  vpc_id                   = module.network.vpc_id
  subnet_ids               = values(module.network.subnet_ids)
  broker_security_group_id = module.broker.security_group_id
  node_type                = "cache.m7g.large"
  replicas                 = 1
  kms_key_arn              = aws_kms_key.this.arn
}

module "broker" {
  source = "../../terraform/broker"

  name                        = var.name
  vpc_id                      = module.network.vpc_id
  subnet_ids                  = module.network.subnet_ids
  s3_prefix_list_id           = module.network.s3_prefix_list_id
  endpoint_cidr               = module.network.vpc_cidr
  sequencer_security_group_id = module.metadata.security_group_id
  client_cidrs                = var.client_cidrs
  metrics_cidrs               = var.metrics_cidrs
  image                       = var.image
  image_repository_arns       = var.image_repository_arns
  bucket_url                  = module.storage.bucket_url
  bucket_policy_json          = module.storage.broker_policy_json
  redis_url_secret_arn        = module.metadata.redis_url_secret_arn
  settings                    = var.settings
  protocol                    = var.protocol
  tls_secret_arn              = var.tls_secret_arn
  credentials_key_secret_arn  = var.credentials_key_secret_arn
  sasl_mechanisms             = var.sasl_mechanisms
  oauthbearer                 = var.oauthbearer
  admin_password_secret_arn   = var.admin_password_secret_arn
  authorization               = var.authorization
  super_users                 = ["User:admin"]
  cpu_units                   = 1024
  memory_mib                  = 4096
  brokers_per_zone_min        = 2
  brokers_per_zone_max        = 6
  log_retention_days          = 90
  kms_key_arn                 = aws_kms_key.this.arn
}

module "observability" {
  source = "../../terraform/observability"

  name                   = var.name
  cluster_name           = module.broker.cluster_name
  service_names          = module.broker.service_names
  load_balancer          = module.broker.load_balancer
  target_groups          = module.broker.target_groups
  broker_log_group_name  = module.broker.log_group_name
  bucket_name            = module.storage.bucket_name
  request_metrics_filter = module.storage.request_metrics_filter
  sequencer_node_ids     = module.metadata.node_ids
  alarm_topic_arns       = [aws_sns_topic.alarms.arn]
}

module "spark" {
  source = "../../terraform/spark"

  name               = var.name
  bucket_name        = var.bucket_name
  bucket_prefix      = var.bucket_prefix
  bucket_kms_key_arn = aws_kms_key.this.arn
  lake_bucket_name   = var.lake_bucket_name
  code_bucket_name   = var.code_bucket_name
  log_retention_days = 90
  log_kms_key_arn    = aws_kms_key.this.arn
}
