variable "name" {
  description = "Prefix of the names of all resources."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,19}$", var.name))
    error_message = "name: up to 20 lower-case letters, digits and hyphens, a letter first."
  }
}

variable "zones" {
  description = "Availability zones by name; each has brokers."
  type        = list(string)

  validation {
    condition     = length(var.zones) >= 1 && length(var.zones) <= 6 && length(toset(var.zones)) == length(var.zones)
    error_message = "zones: one to six different zones; three is usual."
  }
}

variable "existing_vpc" {
  description = "A VPC that is there already: its id, a private subnet of each zone, and their route tables; null to make one."
  type = object({
    vpc_id          = string
    cidr            = string
    subnet_ids      = map(string)
    route_table_ids = list(string)
  })
  default = null

  validation {
    condition     = var.existing_vpc == null || can(cidrnetmask(var.existing_vpc.cidr))
    error_message = "existing_vpc.cidr: an IPv4 range, such as 10.0.0.0/16."
  }
}

variable "cidr" {
  description = "Range of addresses of a VPC that is made here: /16 to /22."
  type        = string
  default     = "10.20.0.0/16"

  validation {
    condition     = can(cidrnetmask(var.cidr)) && try(tonumber(split("/", var.cidr)[1]), 0) >= 16 && try(tonumber(split("/", var.cidr)[1]), 99) <= 22
    error_message = "cidr: an IPv4 range from /16 to /22, such as 10.20.0.0/16."
  }
}

variable "interface_endpoints" {
  description = "Services of AWS that are reached by interface endpoints. These four are what Fargate needs where there is no NAT; empty where the VPC has another way."
  type        = set(string)
  default     = ["ecr.api", "ecr.dkr", "logs", "secretsmanager"]

  validation {
    condition     = alltrue([for service in var.interface_endpoints : can(regex("^[a-z0-9.-]+$", service)) && service != "s3"])
    error_message = "interface_endpoints: names of services, such as ecr.api; S3 has its gateway endpoint."
  }
}

variable "endpoint_zones_max" {
  description = "Maximum number of zones with interface endpoints. Each zone costs money. Zones without endpoints depend on the others."
  type        = number
  default     = 3

  validation {
    condition     = var.endpoint_zones_max >= 1
    error_message = "endpoint_zones_max: at least 1."
  }
}

variable "flow_log_retention_days" {
  description = "How long the VPC's flow logs are kept; 0 for no flow logs. Of a VPC that is made here."
  type        = number
  default     = 0

  validation {
    condition     = contains([0, 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731], var.flow_log_retention_days)
    error_message = "flow_log_retention_days: a number of days that CloudWatch knows, or 0."
  }
}

variable "kms_key_arn" {
  description = "The KMS key of the flow logs; null for CloudWatch's own."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:", var.kms_key_arn))
    error_message = "kms_key_arn: the ARN of a key, or null."
  }
}
