# The least that runs: one broker, one node of Valkey, one zone. For a trial, not for data: a lost
# node or zone is an outage of minutes. What was acknowledged is in the bucket all the same.

provider "aws" {
  region = var.region

  default_tags {
    tags = { Application = "bucketlog", Environment = var.name }
  }
}

provider "random" {}

module "network" {
  source = "../../terraform/network"

  name  = var.name
  zones = [var.zone]
}

module "storage" {
  source = "../../terraform/storage"

  bucket_name        = var.bucket_name
  deleting_role_arns = [module.broker.role_arn]
  deleted_kept_days  = 1
  request_metrics    = false
  force_destroy      = true
}

module "metadata" {
  source = "../../terraform/metadata"

  name                     = var.name
  vpc_id                   = module.network.vpc_id
  subnet_ids               = values(module.network.subnet_ids)
  broker_security_group_id = module.broker.security_group_id
  node_type                = "cache.t4g.micro"
  replicas                 = 0
  secret_recovery_days     = 0
}

module "broker" {
  source = "../../terraform/broker"

  name                        = var.name
  vpc_id                      = module.network.vpc_id
  subnet_ids                  = module.network.subnet_ids
  s3_prefix_list_id           = module.network.s3_prefix_list_id
  endpoint_cidr               = module.network.vpc_cidr
  sequencer_security_group_id = module.metadata.security_group_id
  client_cidrs                = { vpc = module.network.vpc_cidr }
  image                       = var.image
  image_repository_arns       = var.image_repository_arns
  bucket_url                  = module.storage.bucket_url
  bucket_policy_json          = module.storage.broker_policy_json
  redis_url_secret_arn        = module.metadata.redis_url_secret_arn
  cpu_units                   = 1024
  memory_mib                  = 2048
  brokers_per_zone_min        = 1
  brokers_per_zone_max        = 1
  log_retention_days          = 7
  deletion_protection         = false
}
