variable "name" {
  description = "Prefix of the names of all resources."
  type        = string
  default     = "bucketlog-trial"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,19}$", var.name))
    error_message = "name: up to 20 lower-case letters, digits and hyphens, a letter first."
  }
}

variable "region" {
  description = "The region of AWS."
  type        = string
  default     = "us-east-1"
}

variable "zone" {
  description = "The availability zone, by name."
  type        = string
  default     = "us-east-1a"

  validation {
    condition     = startswith(var.zone, var.region)
    error_message = "zone: one of the region."
  }
}

variable "bucket_name" {
  description = "The bucket to make."
  type        = string
}

variable "image" {
  description = "The image of the broker, for ARM64, with a tag or a digest."
  type        = string
}

variable "image_repository_arns" {
  description = "ARNs of the ECR repositories that it comes from."
  type        = list(string)
}
