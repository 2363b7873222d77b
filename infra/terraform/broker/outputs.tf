output "bootstrap" {
  description = "What clients are given (bootstrap.servers): one address for each zone's brokers."
  value       = join(",", [for zone in local.zones : "${aws_lb.bootstrap.dns_name}:${local.listeners[zone]}"])
}

output "bootstrap_by_zone" {
  description = "The same by zone: clients that name their zone's first begin near."
  value       = { for zone, port in local.listeners : zone => "${aws_lb.bootstrap.dns_name}:${port}" }
}

output "certificate_names" {
  description = "Names that the brokers' certificate needs for SSL and SASL_SSL: the name of the load balancer, and a wildcard for the tasks."
  value       = [aws_lb.bootstrap.dns_name, "*.${local.task_domain}"]
}

output "role_arn" {
  description = "The brokers' role, which also does the log's upkeep: it may delete what is over."
  value       = aws_iam_role.broker.arn
}

output "execution_role_arn" {
  description = "The role that starts tasks."
  value       = aws_iam_role.execution.arn
}

output "security_group_id" {
  description = "The brokers' security group."
  value       = aws_security_group.broker.id
}

output "cluster_name" {
  description = "The ECS cluster."
  value       = aws_ecs_cluster.this.name
}

output "service_names" {
  description = "The ECS services by zone."
  value       = { for zone, service in aws_ecs_service.zone : zone => service.name }
}

output "load_balancer" {
  description = "The load balancer, as CloudWatch names it."
  value       = aws_lb.bootstrap.arn_suffix
}

output "target_groups" {
  description = "The target groups by zone, as CloudWatch names them."
  value       = { for zone, group in aws_lb_target_group.zone : zone => group.arn_suffix }
}

output "log_group_name" {
  description = "Where the brokers' own logs go."
  value       = aws_cloudwatch_log_group.broker.name
}

output "http_port" {
  description = "The port of /healthz, /readyz and /metrics on each task."
  value       = local.http_port
}
