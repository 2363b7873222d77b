output "dashboard_name" {
  description = "The dashboard in CloudWatch."
  value       = aws_cloudwatch_dashboard.this.dashboard_name
}

output "alarm_names" {
  description = "All alarms."
  value = concat(
    [for alarm in values(aws_cloudwatch_metric_alarm.zone) : alarm.alarm_name],
    [for alarm in values(aws_cloudwatch_metric_alarm.node) : alarm.alarm_name],
    [for alarm in values(aws_cloudwatch_metric_alarm.line) : alarm.alarm_name],
    aws_cloudwatch_metric_alarm.bucket_errors[*].alarm_name,
  )
}
