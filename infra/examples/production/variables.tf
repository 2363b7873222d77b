variable "name" {
  description = "Prefix of the names of all resources."
  type        = string
  default     = "bucketlog"

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

variable "zones" {
  description = "Three availability zones, by name."
  type        = list(string)
  default     = ["us-east-1a", "us-east-1b", "us-east-1c"]

  validation {
    condition     = length(var.zones) == 3 && alltrue([for zone in var.zones : startswith(zone, var.region)])
    error_message = "zones: three of the region."
  }
}

variable "cidr" {
  description = "Range of addresses of the VPC: one that no network has with which it is to be peered."
  type        = string
  default     = "10.20.0.0/16"

  validation {
    condition     = can(cidrnetmask(var.cidr))
    error_message = "cidr: an IPv4 range."
  }
}

variable "bucket_name" {
  description = "The bucket to make: the log's."
  type        = string
}

variable "bucket_prefix" {
  description = "Prefix of the log in the bucket."
  type        = string
  default     = "prod"
}

variable "lake_bucket_name" {
  description = "The bucket that Spark's jobs write to; it is there already."
  type        = string
}

variable "code_bucket_name" {
  description = "The bucket with the jobs' code; it is there already."
  type        = string
}

variable "reader_principal_arns" {
  description = "Who may take on the reader's role."
  type        = list(string)
  default     = []
}

variable "client_cidrs" {
  description = "From where Kafka clients come, by name."
  type        = map(string)
}

variable "metrics_cidrs" {
  description = "From where Prometheus comes, by name."
  type        = map(string)
  default     = {}
}

variable "image" {
  description = "The image of the broker, for ARM64, with a tag or a digest."
  type        = string
}

variable "image_repository_arns" {
  description = "ARNs of the ECR repositories that it comes from."
  type        = list(string)
}

variable "settings" {
  description = "Further settings of brokers, by name (docs/configuration.md)."
  type        = map(string)
  default     = {}
}

variable "protocol" {
  description = "How clients reach brokers: PLAINTEXT, SSL, SASL_SSL or SASL_PLAINTEXT (docs/deployment.md)."
  type        = string
  default     = "PLAINTEXT"
}

variable "tls_secret_arn" {
  description = "The secret with the brokers' certificate, for SSL and SASL_SSL."
  type        = string
  default     = null
}

variable "credentials_key_secret_arn" {
  description = "The secret with the keys that encrypt credentials, for logins."
  type        = string
  default     = null
}

variable "sasl_mechanisms" {
  description = "Mechanisms of logins: SCRAM-SHA-512, SCRAM-SHA-256, PLAIN and OAUTHBEARER."
  type        = list(string)
  default     = ["SCRAM-SHA-512"]
}

variable "oauthbearer" {
  description = "The provider of tokens, for OAUTHBEARER (docs/oauth.md)."
  type = object({
    jwks_url       = string
    issuer         = string
    audiences      = list(string)
    sub_claim_name = optional(string, "sub")
    cidr           = optional(string)
  })
  default = null
}

variable "admin_password_secret_arn" {
  description = "The secret with the password of the user admin, for logins."
  type        = string
  default     = null
}

variable "authorization" {
  description = "Whether ACLs decide what clients may do. The user admin may do everything."
  type        = bool
  default     = false
}
