output "bootstrap" {
  description = "What clients are given (bootstrap.servers)."
  value       = module.broker.bootstrap
}

output "bootstrap_by_zone" {
  description = "The same by zone."
  value       = module.broker.bootstrap_by_zone
}

output "bucket_url" {
  description = "What readers of the log are given."
  value       = module.storage.bucket_url
}

output "broker_role_arn" {
  description = "The brokers' role, which alone deletes."
  value       = module.broker.role_arn
}

output "reader_role_arn" {
  description = "The reader's role."
  value       = module.storage.reader_role_arn
}

output "spark_role_arn" {
  description = "The role of Spark's jobs."
  value       = module.spark.job_role_arn
}

output "spark_submit" {
  description = "How to run a job."
  value       = module.spark.submit
}

output "alarm_topic_arn" {
  description = "Subscribe to it."
  value       = aws_sns_topic.alarms.arn
}

output "dashboard_name" {
  description = "The dashboard in CloudWatch."
  value       = module.observability.dashboard_name
}

output "certificate_names" {
  description = "The names that the brokers' certificate must have."
  value       = module.broker.certificate_names
}
