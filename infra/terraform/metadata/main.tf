# The sequencer: ElastiCache for Valkey, node-based, cluster mode disabled, one primary whose name
# follows a failover (docs/redis.md). It holds nothing that the bucket does not, so it keeps no
# snapshots. Brokers refuse a server that may evict keys: hence a parameter group of its own.

locals {
  port     = 6379
  username = "bucketlog"
  # what the brokers' user needs and no more: as docs/redis.md has it, which a test compares
  commands = [
    "eval", "evalsha", "info", "cluster|slots", "select",
    "exists", "hdel", "hexists", "hget", "hgetall", "hincrby", "hlen", "hmget", "hscan", "hset",
    "rename", "sadd", "sismember", "time", "unlink", "xadd", "xdel", "xrange", "xread", "zadd", "zrange", "zrangebyscore", "zrem",
    "publish", "pubsub|numsub", "subscribe",
  ]
  access_string = "on ~bucketlog:* &bucketlog:* -@all ${join(" ", [for command in local.commands : "+${command}"])}"
  family        = "valkey${split(".", var.engine_version)[0]}"
}

resource "random_password" "broker" {
  length  = 48
  special = false # it stands in a URL
}

resource "aws_elasticache_user" "broker" {
  user_id       = "${var.name}-broker"
  user_name     = local.username
  engine        = "valkey"
  access_string = local.access_string

  authentication_mode {
    type      = "password"
    passwords = [random_password.broker.result]
  }
}

resource "aws_elasticache_user_group" "brokers" {
  user_group_id = "${var.name}-brokers"
  engine        = "valkey"
  user_ids      = [aws_elasticache_user.broker.user_id]
}

resource "aws_elasticache_parameter_group" "noeviction" {
  name        = "${var.name}-noeviction"
  description = "Nothing is evicted: brokers refuse a server that may."
  family      = local.family

  parameter {
    name  = "maxmemory-policy"
    value = "noeviction"
  }
}

resource "aws_elasticache_subnet_group" "this" {
  name        = var.name
  description = "Where the sequencer of ${var.name} stands."
  subnet_ids  = var.subnet_ids
}

resource "aws_security_group" "this" {
  name        = "${var.name}-sequencer"
  description = "The sequencer: from brokers alone."
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "brokers" {
  security_group_id            = aws_security_group.this.id
  description                  = "Brokers"
  referenced_security_group_id = var.broker_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = local.port
  to_port                      = local.port
}

resource "aws_elasticache_replication_group" "this" {
  # checkov:skip=CKV_AWS_31:there is a user with a password (user_group_ids), which takes the place of an AUTH token
  # checkov:skip=CKV_AWS_191:AWS's own key is the default; a key of one's own is kms_key_arn
  # checkov:skip=CKV2_AWS_50:with a replica, which is the default, failover is automatic; replicas = 0 is for trials
  replication_group_id = var.name
  description          = "The sequencer of ${var.name}."

  engine               = "valkey"
  engine_version       = var.engine_version
  node_type            = var.node_type
  parameter_group_name = aws_elasticache_parameter_group.noeviction.name
  port                 = local.port

  num_cache_clusters         = var.replicas + 1
  automatic_failover_enabled = var.replicas > 0
  multi_az_enabled           = var.replicas > 0

  subnet_group_name  = aws_elasticache_subnet_group.this.name
  security_group_ids = [aws_security_group.this.id]
  user_group_ids     = [aws_elasticache_user_group.brokers.user_group_id]

  transit_encryption_enabled = true
  transit_encryption_mode    = "required"
  at_rest_encryption_enabled = true
  kms_key_id                 = var.kms_key_arn

  snapshot_retention_limit   = 0
  auto_minor_version_upgrade = true
  maintenance_window         = var.maintenance_window
  apply_immediately          = true
}

# the whole URL, as brokers take it: the password stands nowhere else but in the state
resource "aws_secretsmanager_secret" "url" {
  # checkov:skip=CKV_AWS_149:AWS's own key is the default; a key of one's own is kms_key_arn
  # checkov:skip=CKV2_AWS_57:rotation would have to change user, secret and running tasks together; `terraform apply -replace` of the password, then a new deployment, does
  name                    = "${var.name}/redis-url"
  description             = "BUCKETLOG_REDIS_URL of ${var.name}."
  kms_key_id              = var.kms_key_arn
  recovery_window_in_days = var.secret_recovery_days
}

resource "aws_secretsmanager_secret_version" "url" {
  secret_id     = aws_secretsmanager_secret.url.id
  secret_string = "rediss://${local.username}:${random_password.broker.result}@${aws_elasticache_replication_group.this.primary_endpoint_address}:${local.port}"
}
