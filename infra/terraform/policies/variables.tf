variable "bucket_name" {
  description = "The bucket that holds the log, and nothing else."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.bucket_name))
    error_message = "bucket_name: 3 to 63 lower-case letters, digits, dots and hyphens, as S3 wants them."
  }
}

variable "bucket_prefix" {
  description = "Prefix of the log in the bucket, without slashes at its ends; empty for none."
  type        = string
  default     = ""

  validation {
    condition     = var.bucket_prefix == "" || can(regex("^[A-Za-z0-9][A-Za-z0-9._/-]*[A-Za-z0-9]$|^[A-Za-z0-9]$", var.bucket_prefix))
    error_message = "bucket_prefix: letters, digits, dots, hyphens, underscores and inner slashes."
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

variable "partition" {
  description = "The partition of AWS: aws, aws-cn or aws-us-gov."
  type        = string
  default     = "aws"

  validation {
    condition     = contains(["aws", "aws-cn", "aws-us-gov"], var.partition)
    error_message = "partition: aws, aws-cn or aws-us-gov."
  }
}

variable "deleting_role_arns" {
  description = "ARNs of the roles that may delete objects: the brokers', who do the log's upkeep themselves."
  type        = list(string)

  validation {
    condition     = length(var.deleting_role_arns) > 0
    error_message = "deleting_role_arns: name the brokers' role; without one nothing of the log is ever deleted."
  }
  validation {
    condition     = alltrue([for arn in var.deleting_role_arns : can(regex("^arn:[a-z-]+:iam::[0-9]{12}:role/", arn))])
    error_message = "deleting_role_arns: ARNs of IAM roles, without wildcards for the account."
  }
}

variable "kms_key_arn" {
  description = "The KMS key that the bucket is encrypted with; null for S3's own keys."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:", var.kms_key_arn))
    error_message = "kms_key_arn: the ARN of a key, or null."
  }
}

variable "require_tls" {
  description = "Whether requests without TLS are denied. False only for a local store without it."
  type        = bool
  default     = true
}

variable "lake_bucket_name" {
  description = "The bucket that Spark's jobs write to; null for none. Not the log's."
  type        = string
  default     = null

  validation {
    condition     = var.lake_bucket_name == null || var.lake_bucket_name != var.bucket_name
    error_message = "lake_bucket_name: a bucket of its own; in the log's own every PUT has to be create-only."
  }
}

variable "lake_prefix" {
  description = "What of the lake's bucket Spark's jobs may write, without slashes at its ends; empty for all."
  type        = string
  default     = ""

  validation {
    condition     = !startswith(var.lake_prefix, "/") && !endswith(var.lake_prefix, "/")
    error_message = "lake_prefix: without slashes at its ends."
  }
}
