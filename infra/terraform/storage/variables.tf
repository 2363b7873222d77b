variable "bucket_name" {
  description = "The bucket to make: the log's, and nothing else's."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$", var.bucket_name))
    error_message = "bucket_name: 3 to 63 lower-case letters, digits and hyphens (a dot breaks TLS to S3)."
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

variable "deleting_role_arns" {
  description = "ARNs of the roles that may delete objects: the brokers' task role."
  type        = list(string)

  validation {
    condition     = length(var.deleting_role_arns) > 0
    error_message = "deleting_role_arns: name the brokers' role; without one nothing of the log is ever deleted."
  }
}

variable "reader_principal_arns" {
  description = "Who may take on the reader's role; empty for no such role (the reader's policy is made anyway)."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.reader_principal_arns : can(regex("^arn:[a-z-]+:iam::[0-9]{12}:", arn))])
    error_message = "reader_principal_arns: ARNs of IAM principals."
  }
}

variable "sse_kms" {
  description = "Whether S3 encrypts objects with a KMS key (SSE-KMS, with a bucket key). False: with S3's own keys (SSE-S3)."
  type        = bool
  default     = true
}

variable "kms_key_arn" {
  description = "The KMS key to encrypt with; null: the account's key aws/s3, which other accounts cannot use."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:", var.kms_key_arn))
    error_message = "kms_key_arn: the ARN of a key, or null."
  }
  validation {
    condition     = var.kms_key_arn == null || var.sse_kms
    error_message = "kms_key_arn: has no effect without sse_kms."
  }
}

variable "deleted_kept_days" {
  description = "Days that S3 keeps deleted objects as noncurrent versions. They can be restored after a mistake, and they cost storage."
  type        = number
  default     = 3

  validation {
    condition     = var.deleted_kept_days >= 1 && floor(var.deleted_kept_days) == var.deleted_kept_days
    error_message = "deleted_kept_days: a whole number from 1 on."
  }
}

variable "require_tls" {
  description = "Whether requests without TLS are denied. False only for a local store without it."
  type        = bool
  default     = true
}

variable "request_metrics" {
  description = "Whether S3 tells CloudWatch of requests, errors and latencies (billed as custom metrics). The alarms on the bucket need it."
  type        = bool
  default     = true
}

variable "force_destroy" {
  description = "Whether `terraform destroy` may delete a bucket that still holds a log."
  type        = bool
  default     = false
}
