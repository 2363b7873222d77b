variable "name" {
  description = "Prefix of the names of all resources."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,19}$", var.name))
    error_message = "name: up to 20 lower-case letters, digits and hyphens, a letter first."
  }
}

variable "vpc_id" {
  description = "The VPC."
  type        = string

  validation {
    condition     = startswith(var.vpc_id, "vpc-")
    error_message = "vpc_id: the id of a VPC."
  }
}

variable "subnet_ids" {
  description = "A private subnet by zone. Each zone gets a separate service, whose brokers know their zone (BUCKETLOG_ZONE)."
  type        = map(string)

  validation {
    condition     = length(var.subnet_ids) > 0
    error_message = "subnet_ids: at least one zone."
  }
}

variable "s3_prefix_list_id" {
  description = "S3's addresses: what brokers reach there."
  type        = string

  validation {
    condition     = startswith(var.s3_prefix_list_id, "pl-")
    error_message = "s3_prefix_list_id: the id of a prefix list."
  }
}

variable "endpoint_cidr" {
  description = "Where AWS's other services are reached over HTTPS: the VPC's range with interface endpoints, 0.0.0.0/0 behind a NAT."
  type        = string

  validation {
    condition     = can(cidrnetmask(var.endpoint_cidr))
    error_message = "endpoint_cidr: an IPv4 range."
  }
}

variable "sequencer_security_group_id" {
  description = "The security group of Valkey."
  type        = string

  validation {
    condition     = startswith(var.sequencer_security_group_id, "sg-")
    error_message = "sequencer_security_group_id: the id of a security group."
  }
}

variable "sequencer_port" {
  description = "The port of Valkey."
  type        = number
  default     = 6379

  validation {
    condition     = var.sequencer_port > 0 && var.sequencer_port < 65536
    error_message = "sequencer_port: 1 to 65535."
  }
}

variable "client_cidrs" {
  description = "From where clients come, by name: ranges that can reach the subnets' private addresses (this VPC, a peered one). With protocol PLAINTEXT, everyone who reaches brokers can read and write all topics."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for cidr in values(var.client_cidrs) : can(cidrnetmask(cidr)) && cidr != "0.0.0.0/0"])
    error_message = "client_cidrs: IPv4 ranges, and never all of the internet."
  }
}

variable "metrics_cidrs" {
  description = "From where /metrics and /readyz are asked, by name: Prometheus."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for cidr in values(var.metrics_cidrs) : can(cidrnetmask(cidr)) && cidr != "0.0.0.0/0"])
    error_message = "metrics_cidrs: IPv4 ranges, and never all of the internet."
  }
}

variable "image" {
  description = "The image of the broker, for ARM64: infra/container/Dockerfile makes one. By digest is best."
  type        = string

  validation {
    condition     = can(regex("[:@]", var.image)) && !endswith(var.image, ":latest")
    error_message = "image: with a tag other than latest, or a digest."
  }
}

variable "image_repository_arns" {
  description = "ARNs of the ECR repositories that the image comes from."
  type        = list(string)

  validation {
    condition     = alltrue([for arn in var.image_repository_arns : can(regex("^arn:[a-z-]+:ecr:", arn))])
    error_message = "image_repository_arns: ARNs of ECR repositories."
  }
}

variable "bucket_url" {
  description = "Where the log lives (BUCKETLOG_BUCKET_URL)."
  type        = string

  validation {
    condition     = startswith(var.bucket_url, "s3://")
    error_message = "bucket_url: s3://bucket/prefix."
  }
}

variable "bucket_policy_json" {
  description = "What brokers may do in the bucket: the module storage gives it."
  type        = string

  validation {
    condition     = can(jsondecode(var.bucket_policy_json).Statement)
    error_message = "bucket_policy_json: a policy as JSON."
  }
}

variable "redis_url_secret_arn" {
  description = "The secret that holds BUCKETLOG_REDIS_URL: the module metadata gives it."
  type        = string

  validation {
    condition     = can(regex("^arn:[a-z-]+:secretsmanager:", var.redis_url_secret_arn))
    error_message = "redis_url_secret_arn: the ARN of a secret."
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

variable "settings" {
  description = "Further settings of brokers, by name (docs/configuration.md), such as BUCKETLOG_LOG_RETENTION_MS."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.settings) : startswith(name, "BUCKETLOG_")])
    error_message = "settings: names begin with BUCKETLOG_."
  }
  validation {
    condition = length(setintersection(keys(var.settings), [
      "BUCKETLOG_ADVERTISED_HOST", "BUCKETLOG_ADVERTISED_LISTENERS", "BUCKETLOG_ADVERTISED_PORT", "BUCKETLOG_AUTHORIZATION",
      "BUCKETLOG_BUCKET_URL", "BUCKETLOG_CREDENTIALS_KEY_FILE", "BUCKETLOG_DELEGATION_TOKEN_KEY_FILE", "BUCKETLOG_HOST", "BUCKETLOG_HTTP_HOST", "BUCKETLOG_HTTP_PORT",
      "BUCKETLOG_LISTENERS", "BUCKETLOG_NODE_ID", "BUCKETLOG_OAUTHBEARER_AUDIENCES", "BUCKETLOG_OAUTHBEARER_ISSUER",
      "BUCKETLOG_OAUTHBEARER_JWKS_URL", "BUCKETLOG_OAUTHBEARER_SUB_CLAIM_NAME", "BUCKETLOG_PORT", "BUCKETLOG_REDIS_URL", "BUCKETLOG_SASL_MECHANISMS",
      "BUCKETLOG_SHARD", "BUCKETLOG_SSL_CA_FILE", "BUCKETLOG_SSL_CERTIFICATE_FILE", "BUCKETLOG_SSL_CLIENT_AUTH",
      "BUCKETLOG_SSL_KEY_FILE", "BUCKETLOG_SUPER_USERS", "BUCKETLOG_TENANTS_FILE", "BUCKETLOG_TENANT_SERVER_NAMES", "BUCKETLOG_ZONE",
    ])) == 0
    error_message = "settings: addresses, ports, zone, shard, bucket, Redis, certificates, logins and ACLs are set by this module."
  }
}

variable "tenants_file" {
  description = "Tenants (docs/tenants.md): the text of the TOML file of BUCKETLOG_TENANTS_FILE. Needs a protocol with logins: users are USER@TENANT. Tasks then have no listener ADMIN: the first administrator of a tenant is made by `bucketlog cluster init`."
  type        = string
  default     = null

  validation {
    condition     = var.tenants_file == null || startswith(var.protocol, "SASL_")
    error_message = "tenants_file: needs protocol SASL_SSL or SASL_PLAINTEXT."
  }
  validation {
    condition     = var.tenants_file == null || var.admin_password_secret_arn == null
    error_message = "tenants_file: leave out admin_password_secret_arn, and run bucketlog cluster init for each tenant."
  }
}

variable "protocol" {
  description = "Security protocol for clients: PLAINTEXT, SSL, SASL_SSL or SASL_PLAINTEXT. All brokers of a log need the same protocol."
  type        = string
  default     = "PLAINTEXT"

  validation {
    condition     = contains(["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], var.protocol)
    error_message = "protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."
  }
}

variable "tls_secret_arn" {
  description = "For SSL and SASL_SSL: a secret in JSON with the fields certificate (followed by its issuers) and key, in PEM. With client_auth, the field ca has the authority of clients. The certificate needs the names in the output certificate_names."
  type        = string
  default     = null

  validation {
    condition     = var.tls_secret_arn == null || can(regex("^arn:[a-z-]+:secretsmanager:", var.tls_secret_arn))
    error_message = "tls_secret_arn: the ARN of a secret, or null."
  }
  validation {
    condition     = var.tls_secret_arn != null || !endswith(var.protocol, "SSL")
    error_message = "tls_secret_arn: SSL and SASL_SSL need it."
  }
}

variable "client_auth" {
  description = "Certificates of clients (BUCKETLOG_SSL_CLIENT_AUTH): none, requested or required."
  type        = string
  default     = "none"

  validation {
    condition     = contains(["none", "requested", "required"], var.client_auth)
    error_message = "client_auth: none, requested or required."
  }
}

variable "credentials_key_secret_arn" {
  description = "For logins by password (SCRAM and PLAIN): a secret with the keys that encrypt credentials, in hexadecimal, one per line."
  type        = string
  default     = null

  validation {
    condition     = var.credentials_key_secret_arn == null || can(regex("^arn:[a-z-]+:secretsmanager:", var.credentials_key_secret_arn))
    error_message = "credentials_key_secret_arn: the ARN of a secret, or null."
  }
  validation {
    condition     = var.credentials_key_secret_arn != null || !startswith(var.protocol, "SASL_") || length(setsubtract(var.sasl_mechanisms, ["OAUTHBEARER"])) == 0
    error_message = "credentials_key_secret_arn: SCRAM and PLAIN need it."
  }
}

variable "delegation_token_key_secret_arn" {
  description = "For delegation tokens (docs/logins.md): a secret with the keys that sign tokens, in hexadecimal, one per line. Needs SCRAM. null: brokers refuse tokens."
  type        = string
  default     = null

  validation {
    condition     = var.delegation_token_key_secret_arn == null || can(regex("^arn:[a-z-]+:secretsmanager:", var.delegation_token_key_secret_arn))
    error_message = "delegation_token_key_secret_arn: the ARN of a secret, or null."
  }
  validation {
    condition     = var.delegation_token_key_secret_arn == null || (startswith(var.protocol, "SASL_") && length(setintersection(var.sasl_mechanisms, ["SCRAM-SHA-512", "SCRAM-SHA-256"])) > 0)
    error_message = "delegation_token_key_secret_arn: logins by token need a protocol with logins, and SCRAM in sasl_mechanisms."
  }
}

variable "sasl_mechanisms" {
  description = "Mechanisms of logins: SCRAM-SHA-512, SCRAM-SHA-256 and, only over TLS, PLAIN and OAUTHBEARER."
  type        = list(string)
  default     = ["SCRAM-SHA-512"]

  validation {
    condition     = length(var.sasl_mechanisms) > 0 && length(setsubtract(var.sasl_mechanisms, ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER"])) == 0
    error_message = "sasl_mechanisms: some of SCRAM-SHA-512, SCRAM-SHA-256, PLAIN and OAUTHBEARER."
  }
  validation {
    condition     = !contains(var.sasl_mechanisms, "OAUTHBEARER") || var.protocol == "SASL_SSL"
    error_message = "sasl_mechanisms: OAUTHBEARER needs the protocol SASL_SSL."
  }
}

variable "oauthbearer" {
  description = "For OAUTHBEARER: the provider's key URL and issuer, the accepted audiences, and the claim that names the user (docs/oauth.md). With cidr, brokers may reach the provider there over HTTPS; without, only in endpoint_cidr."
  type = object({
    jwks_url       = string
    issuer         = string
    audiences      = list(string)
    sub_claim_name = optional(string, "sub")
    cidr           = optional(string)
  })
  default = null

  validation {
    condition     = var.oauthbearer != null || !contains(var.sasl_mechanisms, "OAUTHBEARER")
    error_message = "oauthbearer: the mechanism OAUTHBEARER needs it."
  }
  validation {
    condition     = var.oauthbearer == null || startswith(coalesce(try(var.oauthbearer.jwks_url, null), "https://"), "https://")
    error_message = "oauthbearer: jwks_url begins with https://."
  }
  validation {
    condition     = var.oauthbearer == null || try(length(var.oauthbearer.issuer) > 0 && length(var.oauthbearer.audiences) > 0, false)
    error_message = "oauthbearer: an issuer and at least one audience."
  }
}

variable "admin_password_secret_arn" {
  description = "For SASL_SSL and SASL_PLAINTEXT: a secret with the password of the user admin, which tasks add to a new log; null: tasks add no user."
  type        = string
  default     = null

  validation {
    condition     = var.admin_password_secret_arn == null || can(regex("^arn:[a-z-]+:secretsmanager:", var.admin_password_secret_arn))
    error_message = "admin_password_secret_arn: the ARN of a secret, or null."
  }
}

variable "authorization" {
  description = "Whether ACLs decide what clients may do (docs/acls.md)."
  type        = bool
  default     = false
}

variable "super_users" {
  description = "Principals that may do everything if ACLs decide, such as User:admin."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for user in var.super_users : can(regex("^User:[^;]+$", user))])
    error_message = "super_users: User: and a name, without semicolons."
  }
}

variable "cpu_units" {
  description = "CPU of a broker, in 1/1024 of a core. One process uses about one core."
  type        = number
  default     = 1024

  validation {
    condition     = contains([512, 1024, 2048, 4096], var.cpu_units)
    error_message = "cpu_units: 512, 1024, 2048 or 4096."
  }
}

variable "memory_mib" {
  description = "Memory of a broker. Its buffers and caches take up to 1 GiB with default settings."
  type        = number
  default     = 3072

  validation {
    condition     = var.memory_mib >= 2048 && var.memory_mib % 1024 == 0
    error_message = "memory_mib: 2048 or more, in steps of 1024."
  }
  validation {
    condition     = var.memory_mib >= 2 * var.cpu_units && var.memory_mib <= min(8 * var.cpu_units, 30720)
    error_message = "memory_mib: Fargate takes 2 to 8 MiB for each of cpu_units, and up to 30720."
  }
}

variable "brokers_per_zone_min" {
  description = "Brokers in each zone, at least."
  type        = number
  default     = 1

  validation {
    condition     = var.brokers_per_zone_min >= 1
    error_message = "brokers_per_zone_min: at least 1."
  }
}

variable "brokers_per_zone_max" {
  description = "Brokers in each zone, at most. Equal to the minimum: no autoscaling happens."
  type        = number
  default     = 4

  validation {
    condition     = var.brokers_per_zone_max >= var.brokers_per_zone_min
    error_message = "brokers_per_zone_max: at least brokers_per_zone_min."
  }
}

variable "cpu_target_percent" {
  description = "Autoscaling keeps the brokers' mean CPU about there."
  type        = number
  default     = 50

  validation {
    condition     = var.cpu_target_percent >= 10 && var.cpu_target_percent <= 90
    error_message = "cpu_target_percent: 10 to 90."
  }
}

variable "network_target_bytes_per_s" {
  description = "Autoscaling keeps what a broker sends about there (to clients and to S3). Small tasks have little network."
  type        = number
  default     = 60000000

  validation {
    condition     = var.network_target_bytes_per_s >= 1000000
    error_message = "network_target_bytes_per_s: at least 1000000."
  }
}

variable "stop_timeout_s" {
  description = "Seconds until a stopping broker is killed; longer than BUCKETLOG_DRAIN_TIMEOUT_MS (20 s)."
  type        = number
  default     = 60

  validation {
    condition     = var.stop_timeout_s >= 30 && var.stop_timeout_s <= 120
    error_message = "stop_timeout_s: 30 to 120, which is Fargate's most."
  }
}

variable "log_retention_days" {
  description = "How long the brokers' own logs are kept in CloudWatch."
  type        = number
  default     = 30

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731], var.log_retention_days)
    error_message = "log_retention_days: a number of days that CloudWatch knows."
  }
}

variable "kms_key_arn" {
  description = "The KMS key of logs and of the secret; null for AWS's own keys."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:", var.kms_key_arn))
    error_message = "kms_key_arn: the ARN of a key, or null."
  }
}

variable "deletion_protection" {
  description = "Whether the load balancer is protected against deletion."
  type        = bool
  default     = true
}
