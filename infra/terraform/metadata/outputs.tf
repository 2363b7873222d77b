output "redis_url_secret_arn" {
  description = "The secret that holds BUCKETLOG_REDIS_URL, with user and password."
  value       = aws_secretsmanager_secret_version.url.arn
}

output "primary_endpoint" {
  description = "The name that follows the primary."
  value       = aws_elasticache_replication_group.this.primary_endpoint_address
}

output "security_group_id" {
  description = "The server's security group."
  value       = aws_security_group.this.id
}

output "port" {
  description = "The server's port."
  value       = local.port
}

output "node_ids" {
  description = "The nodes' ids, as CloudWatch names them."
  value       = [for number in range(1, var.replicas + 2) : format("%s-%03d", var.name, number)]
}
