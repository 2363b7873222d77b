output "bucket_name" {
  description = "The bucket."
  value       = aws_s3_bucket.log.bucket
}

output "bucket_arn" {
  description = "Its ARN."
  value       = aws_s3_bucket.log.arn
}

output "bucket_url" {
  description = "What brokers, readers and Spark are given (BUCKETLOG_BUCKET_URL)."
  value       = "s3://${join("/", compact([aws_s3_bucket.log.bucket, var.bucket_prefix]))}"
}

output "broker_policy_json" {
  description = "What the brokers' role may do in the bucket."
  value       = module.policies.broker
}

output "reader_policy_arn" {
  description = "The policy to attach to whatever reads the log."
  value       = aws_iam_policy.reader.arn
}

output "reader_role_arn" {
  description = "The reader's role; null where nobody was named to take it on."
  value       = one(aws_iam_role.reader[*].arn)
}

output "request_metrics_filter" {
  description = "The name of the bucket's request metrics in CloudWatch; null without."
  value       = one(aws_s3_bucket_metric.requests[*].name)
}
