variable "name" {
  description = "Prefix of the names of all resources."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,19}$", var.name))
    error_message = "name: up to 20 lower-case letters, digits and hyphens, a letter first."
  }
}

variable "cluster_name" {
  description = "The brokers' ECS cluster."
  type        = string

  validation {
    condition     = length(var.cluster_name) > 0
    error_message = "cluster_name: the name of an ECS cluster."
  }
}

variable "service_names" {
  description = "The ECS services by zone."
  type        = map(string)

  validation {
    condition     = length(var.service_names) > 0
    error_message = "service_names: at least one."
  }
}

variable "load_balancer" {
  description = "The load balancer, as CloudWatch names it (net/…)."
  type        = string

  validation {
    condition     = startswith(var.load_balancer, "net/")
    error_message = "load_balancer: the suffix of a network load balancer's ARN, net/…"
  }
}

variable "target_groups" {
  description = "The target groups by zone, as CloudWatch names them."
  type        = map(string)

  validation {
    condition     = toset(keys(var.target_groups)) == toset(keys(var.service_names))
    error_message = "target_groups: of the same zones as service_names."
  }
}

variable "broker_log_group_name" {
  description = "Where the brokers' own logs go: alarms are made of lines in it."
  type        = string

  validation {
    condition     = length(var.broker_log_group_name) > 0
    error_message = "broker_log_group_name: the name of a log group."
  }
}

variable "bucket_name" {
  description = "The bucket."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.bucket_name))
    error_message = "bucket_name: the name of a bucket."
  }
}

variable "request_metrics_filter" {
  description = "The name of the bucket's request metrics; null where it has none: then there is no alarm on S3's errors."
  type        = string
  default     = null

  validation {
    condition     = var.request_metrics_filter == null || try(length(var.request_metrics_filter) > 0, false)
    error_message = "request_metrics_filter: a name, or null."
  }
}

variable "sequencer_node_ids" {
  description = "The nodes of ElastiCache."
  type        = list(string)

  validation {
    condition     = length(var.sequencer_node_ids) > 0
    error_message = "sequencer_node_ids: at least one."
  }
}

variable "alarm_topic_arns" {
  description = "SNS topics that receive alarms."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.alarm_topic_arns : can(regex("^arn:[a-z-]+:sns:", arn))])
    error_message = "alarm_topic_arns: ARNs of SNS topics."
  }
}

variable "cpu_alarm_percent" {
  description = "Brokers whose mean CPU stays above it for a quarter of an hour: autoscaling is at its end."
  type        = number
  default     = 85

  validation {
    condition     = var.cpu_alarm_percent > 0 && var.cpu_alarm_percent <= 100
    error_message = "cpu_alarm_percent: 1 to 100."
  }
}

variable "memory_alarm_percent" {
  description = "Brokers, or the sequencer, that use more of their memory."
  type        = number
  default     = 85

  validation {
    condition     = var.memory_alarm_percent > 0 && var.memory_alarm_percent <= 100
    error_message = "memory_alarm_percent: 1 to 100."
  }
}
