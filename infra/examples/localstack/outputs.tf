output "bucket_url" {
  description = "BUCKETLOG_BUCKET_URL of brokers; they also need AWS_ENDPOINT_URL_S3."
  value       = module.storage.bucket_url
}

output "broker_role_arn" {
  description = "The brokers' role."
  value       = aws_iam_role.broker.arn
}
