# What CloudWatch is told anyway (ECS, the load balancer, S3, ElastiCache), and what brokers say in
# their logs, as a dashboard and alarms. The brokers' own figures are at /metrics, for Prometheus.

data "aws_region" "here" {}

locals {
  # lines of stateless_broker/health.py, which a test compares
  log_lines = {
    writing_stopped = { pattern = "\"writing is stopped\"", text = "A broker has stopped writing for good: it found damage or a bug." }
    degraded        = { pattern = "\"is degraded\"", text = "A part of a broker does not work (the line says which and why)." }
  }
  namespace = "Bucketlog/${var.name}"

  of_service = { for zone, service in var.service_names : zone => { ClusterName = var.cluster_name, ServiceName = service } }
  of_group   = { for zone, group in var.target_groups : zone => { LoadBalancer = var.load_balancer, TargetGroup = group } }

  zone_alarms = {
    unhealthy = {
      text       = "Brokers whose port takes no connections."
      namespace  = "AWS/NetworkELB", metric = "UnHealthyHostCount", statistic = "Maximum"
      comparison = "GreaterThanThreshold", threshold = 0, periods = 5, dimensions = local.of_group, missing = "notBreaching"
    }
    none_healthy = {
      text       = "No broker of the zone takes connections."
      namespace  = "AWS/NetworkELB", metric = "HealthyHostCount", statistic = "Maximum"
      comparison = "LessThanThreshold", threshold = 1, periods = 2, dimensions = local.of_group, missing = "breaching"
    }
    cpu = {
      text       = "Brokers have been busy for a quarter of an hour."
      namespace  = "AWS/ECS", metric = "CPUUtilization", statistic = "Average"
      comparison = "GreaterThanThreshold", threshold = var.cpu_alarm_percent, periods = 15, dimensions = local.of_service, missing = "missing"
    }
    memory = {
      text       = "Brokers are short of memory."
      namespace  = "AWS/ECS", metric = "MemoryUtilization", statistic = "Maximum"
      comparison = "GreaterThanThreshold", threshold = var.memory_alarm_percent, periods = 3, dimensions = local.of_service, missing = "missing"
    }
  }
  node_alarms = {
    memory    = { text = "The sequencer is short of memory; it refuses writes when it has none.", metric = "DatabaseMemoryUsagePercentage", threshold = var.memory_alarm_percent }
    cpu       = { text = "The sequencer's one core is busy.", metric = "EngineCPUUtilization", threshold = 80 }
    evictions = { text = "The sequencer evicts keys, which its policy should never do.", metric = "Evictions", threshold = 0 }
  }

  by_zone = merge([for kind, alarm in local.zone_alarms : {
    for zone in keys(var.service_names) : "${kind}-${zone}" => merge(alarm, { dimensions = alarm.dimensions[zone] })
  }]...)
  by_node = merge([for kind, alarm in local.node_alarms : {
    for node in var.sequencer_node_ids : "${kind}-${node}" => merge(alarm, { node = node })
  }]...)
}

resource "aws_cloudwatch_metric_alarm" "zone" {
  for_each = local.by_zone

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.text
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = each.value.statistic
  comparison_operator = each.value.comparison
  threshold           = each.value.threshold
  period              = 60
  evaluation_periods  = each.value.periods
  treat_missing_data  = each.value.missing
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
}

resource "aws_cloudwatch_metric_alarm" "node" {
  for_each = local.by_node

  alarm_name          = "${var.name}-sequencer-${each.key}"
  alarm_description   = each.value.text
  namespace           = "AWS/ElastiCache"
  metric_name         = each.value.metric
  dimensions          = { CacheClusterId = each.value.node }
  statistic           = "Maximum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.threshold
  period              = 60
  evaluation_periods  = 5
  treat_missing_data  = "missing"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
}

# 412 is how S3 answers a second create, and counts among its 4xx: only 5xx says that something is wrong
resource "aws_cloudwatch_metric_alarm" "bucket_errors" {
  count = var.request_metrics_filter == null ? 0 : 1

  alarm_name          = "${var.name}-bucket-5xx"
  alarm_description   = "S3 answers with errors; brokers try again, and produce waits."
  namespace           = "AWS/S3"
  metric_name         = "5xxErrors"
  dimensions          = { BucketName = var.bucket_name, FilterId = var.request_metrics_filter }
  statistic           = "Sum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = 10
  period              = 60
  evaluation_periods  = 5
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
}

resource "aws_cloudwatch_log_metric_filter" "line" {
  for_each = local.log_lines

  name           = "${var.name}-${each.key}"
  log_group_name = var.broker_log_group_name
  pattern        = each.value.pattern

  metric_transformation {
    namespace     = local.namespace
    name          = each.key
    value         = "1"
    default_value = "0"
  }
}

resource "aws_cloudwatch_metric_alarm" "line" {
  for_each = local.log_lines

  alarm_name          = "${var.name}-${replace(each.key, "_", "-")}"
  alarm_description   = each.value.text
  namespace           = local.namespace
  metric_name         = each.key
  statistic           = "Sum"
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  period              = 60
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns
}

locals {
  per_zone = { for title, metric in {
    "CPU of brokers (%)"    = ["AWS/ECS", "CPUUtilization", "Average"]
    "Memory of brokers (%)" = ["AWS/ECS", "MemoryUtilization", "Maximum"]
    "Brokers"               = ["ECS/ContainerInsights", "RunningTaskCount", "Average"]
    "Sent (B/s a broker)"   = ["ECS/ContainerInsights", "NetworkTxBytes", "Average"]
  } : title => [for zone in sort(keys(var.service_names)) : [metric[0], metric[1], "ClusterName", var.cluster_name, "ServiceName", var.service_names[zone], { stat = metric[2], label = zone }]] }

  per_node = { for title, metric in {
    "CPU of the sequencer (%)"     = "EngineCPUUtilization"
    "Memory of the sequencer (%)"  = "DatabaseMemoryUsagePercentage"
    "Connections to the sequencer" = "CurrConnections"
  } : title => [for node in var.sequencer_node_ids : ["AWS/ElastiCache", metric, "CacheClusterId", node, { stat = "Maximum", label = node }]] }

  of_bucket = { for title, metrics in {
    "Requests to the bucket"          = [["PutRequests", "Sum"], ["GetRequests", "Sum"], ["ListRequests", "Sum"], ["DeleteRequests", "Sum"], ["5xxErrors", "Sum"]]
    "Latency of the bucket, p99 (ms)" = [["TotalRequestLatency", "p99"], ["FirstByteLatency", "p99"]]
  } : title => [for metric in metrics : ["AWS/S3", metric[0], "BucketName", var.bucket_name, "FilterId", coalesce(var.request_metrics_filter, "none"), { stat = metric[1], label = metric[0] }]] if var.request_metrics_filter != null }

  panels = merge(local.per_zone, local.per_node, local.of_bucket)
}

resource "aws_cloudwatch_dashboard" "this" {
  dashboard_name = var.name
  dashboard_body = jsonencode({
    widgets = [for index, title in sort(keys(local.panels)) : {
      type   = "metric"
      x      = 8 * (index % 3)
      y      = 6 * floor(index / 3)
      width  = 8
      height = 6
      properties = {
        title   = title
        region  = data.aws_region.here.region
        view    = "timeSeries"
        period  = 60
        metrics = local.panels[title]
      }
    }]
  })
}
