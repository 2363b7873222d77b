# terraform init && terraform test: the provider is a mock, no account is needed.

mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { region = "us-east-1" }
  }
}

variables {
  name                   = "example"
  cluster_name           = "example"
  service_names          = { us-east-1a = "example-us-east-1a", us-east-1b = "example-us-east-1b" }
  load_balancer          = "net/example/1"
  target_groups          = { us-east-1a = "targetgroup/a/1", us-east-1b = "targetgroup/b/1" }
  broker_log_group_name  = "/example/broker"
  bucket_name            = "example-log"
  request_metrics_filter = "EntireBucket"
  sequencer_node_ids     = ["example-001", "example-002"]
}

run "each_zone_and_node_has_alarms" {
  command = plan

  assert {
    condition     = length(output.alarm_names) == 4 * 2 + 3 * 2 + 2 + 1
    error_message = "An alarm is missing."
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.zone["none_healthy-us-east-1a"].dimensions.TargetGroup == "targetgroup/a/1"
    error_message = "An alarm looks at another zone."
  }
  assert {
    condition     = length(jsondecode(aws_cloudwatch_dashboard.this.dashboard_body).widgets) == 9
    error_message = "A panel is missing."
  }
}

run "a_bucket_without_metrics_has_no_alarm" {
  command = plan

  variables {
    request_metrics_filter = null
  }

  assert {
    condition     = length(aws_cloudwatch_metric_alarm.bucket_errors) == 0
    error_message = "An alarm looks at metrics that are not there."
  }
}
