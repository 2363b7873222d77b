variable "name" {
  description = "Prefix of the names of all resources."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,19}$", var.name))
    error_message = "name: up to 20 lower-case letters, digits and hyphens, a letter first."
  }
}

variable "bucket_name" {
  description = "The log's bucket."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.bucket_name))
    error_message = "bucket_name: the name of a bucket."
  }
}

variable "bucket_prefix" {
  description = "Prefix of the log in the bucket, without slashes at its ends; empty for none."
  type        = string
  default     = ""

  validation {
    condition     = !startswith(var.bucket_prefix, "/") && !endswith(var.bucket_prefix, "/")
    error_message = "bucket_prefix: without slashes at its ends."
  }
}

variable "shard" {
  description = "The shard of the cluster (BUCKETLOG_SHARD)."
  type        = number
  default     = 0

  validation {
    condition     = var.shard >= 0 && floor(var.shard) == var.shard
    error_message = "shard: a whole number from 0 on."
  }
}

variable "bucket_kms_key_arn" {
  description = "The KMS key that the log's bucket is encrypted with; null for S3's own keys."
  type        = string
  default     = null

  validation {
    condition     = var.bucket_kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:", var.bucket_kms_key_arn))
    error_message = "bucket_kms_key_arn: the ARN of a key, or null."
  }
}

variable "lake_bucket_name" {
  description = "The bucket that jobs write to. It is there already, and is not the log's."
  type        = string

  validation {
    condition     = var.lake_bucket_name != var.bucket_name
    error_message = "lake_bucket_name: a bucket of its own; in the log's own every PUT has to be create-only."
  }
}

variable "lake_prefix" {
  description = "What of it jobs may write, without slashes at its ends; empty for all."
  type        = string
  default     = ""

  validation {
    condition     = !startswith(var.lake_prefix, "/") && !endswith(var.lake_prefix, "/")
    error_message = "lake_prefix: without slashes at its ends."
  }
}

variable "code_bucket_name" {
  description = "The bucket with the jobs' code: bucketlog-spark.zip, needed.tar.gz, job.py."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.code_bucket_name))
    error_message = "code_bucket_name: the name of a bucket."
  }
}

variable "release_label" {
  description = "A release of EMR Serverless with Spark 4.0 or newer. bucketlog is tested with Spark 4.1."
  type        = string
  default     = "emr-spark-8.0.0"

  validation {
    condition     = startswith(var.release_label, "emr-spark-")
    error_message = "release_label: emr-7 and older have Spark 3, which has no Python data sources."
  }
}

variable "cpu_max" {
  description = "Cores of all jobs at once, at most."
  type        = number
  default     = 64

  validation {
    condition     = var.cpu_max >= 4
    error_message = "cpu_max: at least 4."
  }
}

variable "memory_max_gb" {
  description = "Memory of all jobs at once, at most."
  type        = number
  default     = 256

  validation {
    condition     = var.memory_max_gb >= 16
    error_message = "memory_max_gb: at least 16."
  }
}

variable "idle_timeout_minutes" {
  description = "Minutes without a job until the application stops. A stopped application costs nothing."
  type        = number
  default     = 15

  validation {
    condition     = var.idle_timeout_minutes >= 1 && var.idle_timeout_minutes <= 10080
    error_message = "idle_timeout_minutes: 1 to 10080."
  }
}

variable "log_retention_days" {
  description = "How long the jobs' logs are kept in CloudWatch."
  type        = number
  default     = 30

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731], var.log_retention_days)
    error_message = "log_retention_days: a number of days that CloudWatch knows."
  }
}

variable "log_kms_key_arn" {
  description = "The KMS key of the jobs' logs; null for CloudWatch's own."
  type        = string
  default     = null

  validation {
    condition     = var.log_kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:", var.log_kms_key_arn))
    error_message = "log_kms_key_arn: the ARN of a key, or null."
  }
}
