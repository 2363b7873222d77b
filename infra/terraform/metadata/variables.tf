variable "name" {
  description = "Prefix of the names of all resources."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,19}$", var.name))
    error_message = "name: up to 20 lower-case letters, digits and hyphens, a letter first."
  }
}

variable "vpc_id" {
  description = "The VPC of the brokers."
  type        = string

  validation {
    condition     = startswith(var.vpc_id, "vpc-")
    error_message = "vpc_id: the id of a VPC."
  }
}

variable "subnet_ids" {
  description = "Subnets of the servers, in at least two zones if there is a replica."
  type        = list(string)

  validation {
    condition     = length(var.subnet_ids) > 0
    error_message = "subnet_ids: at least one subnet."
  }
}

variable "broker_security_group_id" {
  description = "The brokers' security group: nobody else reaches the server."
  type        = string

  validation {
    condition     = startswith(var.broker_security_group_id, "sg-")
    error_message = "broker_security_group_id: the id of a security group."
  }
}

variable "node_type" {
  description = "The node's type. What it holds is small; its CPU is what commits need."
  type        = string
  default     = "cache.t4g.small"

  validation {
    condition     = startswith(var.node_type, "cache.")
    error_message = "node_type: a node's type, such as cache.m7g.large."
  }
}

variable "replicas" {
  description = "Replicas in other zones. One makes an outage shorter; 0 means that a lost node is replaced by AWS, in minutes. Nothing that was acknowledged depends on it."
  type        = number
  default     = 1

  validation {
    condition     = var.replicas >= 0 && var.replicas <= 5
    error_message = "replicas: 0 to 5."
  }
}

variable "engine_version" {
  description = "The version of Valkey: 7.2, or 8.0 and newer."
  type        = string
  default     = "8.0"

  validation {
    condition     = can(regex("^([89]\\.[0-9]|7\\.2)$", var.engine_version))
    error_message = "engine_version: of Valkey, such as 8.0."
  }
}

variable "maintenance_window" {
  description = "When AWS may replace nodes (UTC), such as sun:03:00-sun:04:00."
  type        = string
  default     = "sun:03:00-sun:04:00"

  validation {
    condition     = can(regex("^(mon|tue|wed|thu|fri|sat|sun):[0-2][0-9]:[0-5][0-9]-(mon|tue|wed|thu|fri|sat|sun):[0-2][0-9]:[0-5][0-9]$", var.maintenance_window))
    error_message = "maintenance_window: such as sun:03:00-sun:04:00."
  }
}

variable "kms_key_arn" {
  description = "The KMS key of the server's disk and of the secret; null for AWS's own keys."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:", var.kms_key_arn))
    error_message = "kms_key_arn: the ARN of a key, or null."
  }
}

variable "secret_recovery_days" {
  description = "How long the secret can be brought back after it was deleted; 0: it cannot, and its name is free at once."
  type        = number
  default     = 7

  validation {
    condition     = var.secret_recovery_days == 0 || (var.secret_recovery_days >= 7 && var.secret_recovery_days <= 30)
    error_message = "secret_recovery_days: 0, or 7 to 30."
  }
}
