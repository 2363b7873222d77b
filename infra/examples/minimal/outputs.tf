output "bootstrap" {
  description = "What clients in the VPC are given (bootstrap.servers)."
  value       = module.broker.bootstrap
}

output "bucket_url" {
  description = "What readers of the log are given."
  value       = module.storage.bucket_url
}

output "broker_role_arn" {
  description = "The brokers' role."
  value       = module.broker.role_arn
}

output "vpc_id" {
  description = "Where clients have to be."
  value       = module.network.vpc_id
}
