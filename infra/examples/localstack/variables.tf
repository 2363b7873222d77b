variable "endpoint" {
  description = "Where LocalStack listens."
  type        = string
  default     = "http://127.0.0.1:4566"

  validation {
    condition     = can(regex("^https?://", var.endpoint))
    error_message = "endpoint: such as http://127.0.0.1:4566."
  }
}

variable "bucket_name" {
  description = "The bucket to make."
  type        = string
  default     = "bucketlog"
}
