# Brokers on Fargate: a service for each zone, whose tasks know their zone. Clients are given the
# load balancer's address to begin with; each task advertises its own private address, and clients
# talk to that from then on.

data "aws_region" "here" {}

locals {
  kafka_port   = 9092
  http_port    = 8080
  zones        = sort(keys(var.subnet_ids))
  listeners    = { for index, zone in local.zones : zone => local.kafka_port + index }
  container    = "broker"
  health_query = "import urllib.request as r; r.urlopen('http://127.0.0.1:${local.http_port}/healthz', timeout=3)"

  # what clients of the listener speak (docs/tls.md, docs/logins.md)
  has_tls    = endswith(var.protocol, "SSL")
  has_logins = startswith(var.protocol, "SASL_")

  # SCRAM and PLAIN have credentials in the log; OAUTHBEARER has a provider
  has_passwords = local.has_logins && length(setsubtract(var.sasl_mechanisms, ["OAUTHBEARER"])) > 0
  has_tokens    = local.has_logins && contains(var.sasl_mechanisms, "OAUTHBEARER")

  has_delegation_tokens = local.has_logins && var.delegation_token_key_secret_arn != null

  # with tenants, nothing would tell whose the listener ADMIN is
  has_tenants = var.tenants_file != null
  has_admin   = local.has_logins && !local.has_tenants

  # AWS's names of private addresses, as ip-10-20-0-5.ec2.internal
  task_domain = data.aws_region.here.region == "us-east-1" ? "ec2.internal" : "${data.aws_region.here.region}.compute.internal"

  # a task's own containers alone reach the listener ADMIN
  admin_address = "127.0.0.1:9091"
  folder        = "/tmp/security"

  listener_settings = merge(
    { for name, value in { BUCKETLOG_HOST = "0.0.0.0", BUCKETLOG_PORT = tostring(local.kafka_port) } : name => value if var.protocol == "PLAINTEXT" },
    { for name, value in {
      BUCKETLOG_LISTENERS = join(",", concat(
        [for address in [local.admin_address] : "ADMIN:PLAINTEXT://${address}" if local.has_admin],
        ["${var.protocol}://0.0.0.0:${local.kafka_port}"],
      ))
    } : name => value if var.protocol != "PLAINTEXT" },
    { for name, value in {
      BUCKETLOG_SSL_CERTIFICATE_FILE = "${local.folder}/tls.crt"
      BUCKETLOG_SSL_KEY_FILE         = "${local.folder}/tls.key"
      BUCKETLOG_SSL_CLIENT_AUTH      = var.client_auth
    } : name => value if local.has_tls },
    { for name, value in { BUCKETLOG_SSL_CA_FILE = "${local.folder}/ca.crt" } : name => value if local.has_tls && var.client_auth != "none" },
    { for name, value in { BUCKETLOG_SASL_MECHANISMS = join(",", var.sasl_mechanisms) } : name => value if local.has_logins },
    { for name, value in { BUCKETLOG_CREDENTIALS_KEY_FILE = "${local.folder}/credentials.keys" } : name => value if local.has_passwords },
    { for name, value in { BUCKETLOG_DELEGATION_TOKEN_KEY_FILE = "${local.folder}/tokens.keys" } : name => value if local.has_delegation_tokens },
    { for name, value in {
      BUCKETLOG_OAUTHBEARER_JWKS_URL       = try(var.oauthbearer.jwks_url, "")
      BUCKETLOG_OAUTHBEARER_ISSUER         = try(var.oauthbearer.issuer, "")
      BUCKETLOG_OAUTHBEARER_AUDIENCES      = try(join(",", var.oauthbearer.audiences), "")
      BUCKETLOG_OAUTHBEARER_SUB_CLAIM_NAME = try(var.oauthbearer.sub_claim_name, "")
    } : name => value if local.has_tokens },
    # AWS's names of private addresses have none for tenants: users are USER@TENANT
    { for name, value in {
      BUCKETLOG_TENANTS_FILE        = "${local.folder}/tenants.toml"
      BUCKETLOG_TENANT_SERVER_NAMES = "false"
      TENANTS_TOML                  = var.tenants_file
    } : name => value if local.has_tenants },
    # Clients of ADMIN have no login, and add the first user. Elsewhere, nobody is without a name.
    { for name, value in {
      BUCKETLOG_AUTHORIZATION = "true"
      BUCKETLOG_SUPER_USERS   = join(";", concat([for user in ["User:ANONYMOUS"] : user if local.has_admin], var.super_users))
    } : name => value if var.authorization },
  )

  environment = {
    for zone in local.zones : zone => merge(var.settings, local.listener_settings, {
      AWS_REGION           = data.aws_region.here.region
      BUCKETLOG_BUCKET_URL = var.bucket_url
      BUCKETLOG_HTTP_HOST  = "0.0.0.0"
      BUCKETLOG_HTTP_PORT  = tostring(local.http_port)
      BUCKETLOG_SHARD      = tostring(var.shard)
      BUCKETLOG_ZONE       = zone
    })
  }

  # Secrets reach a task as variables. The broker reads files, which are the task's own.
  secrets = concat(
    [{ name = "BUCKETLOG_REDIS_URL", valueFrom = var.redis_url_secret_arn }],
    [for name, key in { TLS_CERTIFICATE = "certificate", TLS_KEY = "key" } : { name = name, valueFrom = "${var.tls_secret_arn}:${key}::" } if local.has_tls],
    [for name, key in { TLS_CA = "ca" } : { name = name, valueFrom = "${var.tls_secret_arn}:${key}::" } if local.has_tls && var.client_auth != "none"],
    [for name in ["CREDENTIALS_KEYS"] : { name = name, valueFrom = var.credentials_key_secret_arn } if local.has_passwords],
    [for name in ["TOKEN_KEYS"] : { name = name, valueFrom = var.delegation_token_key_secret_arn } if local.has_delegation_tokens],
  )
  secret_files = {
    TLS_CERTIFICATE  = "tls.crt"
    TLS_KEY          = "tls.key"
    TLS_CA           = "ca.crt"
    CREDENTIALS_KEYS = "credentials.keys"
    TOKEN_KEYS       = "tokens.keys"
  }
  write_secrets = concat(
    ["umask 077", "mkdir -p ${local.folder}"],
    flatten([for secret in local.secrets : [
      format("printf '%%s\\n' \"$%s\" > ${local.folder}/${local.secret_files[secret.name]}", secret.name),
      "unset ${secret.name}",
    ] if contains(keys(local.secret_files), secret.name)]),
    [for file in ["tenants.toml"] : "printf '%s\\n' \"$TENANTS_TOML\" > ${local.folder}/${file}" if local.has_tenants],
  )

  # A task learns its address when it starts. `exec`: the broker is process 1, and gets the SIGTERM.
  start = join(" && ", [
    "BUCKETLOG_ADVERTISED_HOST=$(python -P -c 'import socket; print(socket.gethostbyname(socket.gethostname()))')",
    "export BUCKETLOG_ADVERTISED_HOST",
    "exec python -P -m bucketlog.stateless_broker",
  ])

  # The same for other protocols: the address is a name, which a certificate can have.
  secured_start = join(" && ", concat(local.write_secrets, [
    "TASK_NAME=ip-$(python -P -c 'import socket; print(socket.gethostbyname(socket.gethostname()))' | tr . -).${local.task_domain}",
    "export BUCKETLOG_ADVERTISED_LISTENERS=${local.has_admin ? "ADMIN://${local.admin_address}," : ""}${var.protocol}://$TASK_NAME:${local.kafka_port}",
    "exec python -P -m bucketlog.stateless_broker",
  ]))

  # Adds the administrator to a new log, and ends. A password that is there already stays.
  add_admin = join("; ", [
    "for try in $(seq 24)",
    "do bucketlog user list -b ${local.admin_address} -o jsonl | grep -q '\"user\": \"admin\"' && exit 0",
    "printf '%s\\n' \"$ADMIN_PASSWORD\" | bucketlog user add admin -b ${local.admin_address} && exit 0",
    "sleep 5",
    "done",
    "exit 1",
  ])
  admin_containers = [for arn in var.admin_password_secret_arn[*] : {
    name                   = "admin"
    image                  = var.image
    essential              = false
    entryPoint             = ["/bin/sh", "-c"]
    command                = [local.add_admin]
    readonlyRootFilesystem = true
    secrets                = [{ name = "ADMIN_PASSWORD", valueFrom = arn }]
    dependsOn              = [{ containerName = local.container, condition = "HEALTHY" }]
  } if local.has_passwords]
}

# --- who may reach whom

resource "aws_security_group" "broker" {
  name        = "${var.name}-broker"
  description = "Brokers: Kafka from clients, HTTP from Prometheus; to S3, the sequencer, AWS's endpoints."
  vpc_id      = var.vpc_id
}

resource "aws_security_group" "bootstrap" {
  name        = "${var.name}-bootstrap"
  description = "The load balancer: Kafka from clients, to brokers."
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "broker_clients" {
  for_each = var.client_cidrs

  security_group_id = aws_security_group.broker.id
  description       = "Kafka clients: ${each.key}"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = local.kafka_port
  to_port           = local.kafka_port
}

resource "aws_vpc_security_group_ingress_rule" "broker_metrics" {
  for_each = var.metrics_cidrs

  security_group_id = aws_security_group.broker.id
  description       = "Prometheus: ${each.key}"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = local.http_port
  to_port           = local.http_port
}

resource "aws_vpc_security_group_ingress_rule" "broker_bootstrap" {
  security_group_id            = aws_security_group.broker.id
  description                  = "The load balancer, its health checks too"
  referenced_security_group_id = aws_security_group.bootstrap.id
  ip_protocol                  = "tcp"
  from_port                    = local.kafka_port
  to_port                      = local.kafka_port
}

resource "aws_vpc_security_group_egress_rule" "broker_s3" {
  security_group_id = aws_security_group.broker.id
  description       = "S3, by the gateway endpoint"
  prefix_list_id    = var.s3_prefix_list_id
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_security_group_egress_rule" "broker_endpoints" {
  security_group_id = aws_security_group.broker.id
  description       = "AWS's other services"
  cidr_ipv4         = var.endpoint_cidr
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_security_group_egress_rule" "broker_provider" {
  for_each = toset([for provider in var.oauthbearer[*] : provider.cidr if local.has_tokens && provider.cidr != null])

  security_group_id = aws_security_group.broker.id
  description       = "The provider of tokens"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_security_group_egress_rule" "broker_sequencer" {
  security_group_id            = aws_security_group.broker.id
  description                  = "The sequencer"
  referenced_security_group_id = var.sequencer_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = var.sequencer_port
  to_port                      = var.sequencer_port
}

resource "aws_vpc_security_group_ingress_rule" "bootstrap_clients" {
  for_each = var.client_cidrs

  security_group_id = aws_security_group.bootstrap.id
  description       = "Kafka clients: ${each.key}"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = local.kafka_port
  to_port           = local.kafka_port + length(local.zones) - 1
}

resource "aws_vpc_security_group_egress_rule" "bootstrap_brokers" {
  security_group_id            = aws_security_group.bootstrap.id
  description                  = "Brokers"
  referenced_security_group_id = aws_security_group.broker.id
  ip_protocol                  = "tcp"
  from_port                    = local.kafka_port
  to_port                      = local.kafka_port
}

# --- where clients begin: one port for each zone's brokers

resource "aws_lb" "bootstrap" {
  # checkov:skip=CKV_AWS_91:access logs of a network load balancer hold connections whose TLS ends there alone, and there are none
  # checkov:skip=CKV_AWS_150:deletion protection is on unless the user says otherwise (deletion_protection)
  name               = "${var.name}-bootstrap"
  load_balancer_type = "network"
  internal           = true
  subnets            = values(var.subnet_ids)
  security_groups    = [aws_security_group.bootstrap.id]

  # metadata alone goes this way: little, and it must be answered from any zone
  enable_cross_zone_load_balancing = true
  enable_deletion_protection       = var.deletion_protection
}

resource "aws_lb_target_group" "zone" {
  for_each = local.listeners

  name                 = "${var.name}-${each.value}"
  vpc_id               = var.vpc_id
  target_type          = "ip"
  protocol             = "TCP"
  port                 = local.kafka_port
  deregistration_delay = 30

  # That the port takes connections, which a broker's does once it serves. Not /readyz: it is 503
  # while Redis or the bucket is away, and ECS would replace all brokers, who go on by themselves.
  health_check {
    protocol            = "TCP"
    port                = "traffic-port"
    interval            = 10
    healthy_threshold   = 2
    unhealthy_threshold = 3
  }
}

resource "aws_lb_listener" "zone" {
  # checkov:skip=CKV_AWS_2:Kafka's protocol over TCP; TLS ends at the brokers, whose certificates clients check (var.protocol)
  # checkov:skip=CKV_AWS_103:TLS passes through, as above; brokers speak 1.2 and 1.3
  for_each = local.listeners

  load_balancer_arn = aws_lb.bootstrap.arn
  protocol          = "TCP"
  port              = each.value

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.zone[each.key].arn
  }
}

# --- roles: one to start a task, one for the broker in it

resource "aws_iam_role" "execution" {
  name = "${var.name}-execution"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "execution" {
  name = "start-tasks"
  role = aws_iam_role.execution.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "Login"
          Effect   = "Allow"
          Action   = ["ecr:GetAuthorizationToken"]
          Resource = ["*"] # it takes no other
        },
        {
          Sid      = "Log"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = ["${aws_cloudwatch_log_group.broker.arn}:*"]
        },
        {
          Sid    = "Secret"
          Effect = "Allow"
          Action = ["secretsmanager:GetSecretValue"]
          Resource = compact([
            var.redis_url_secret_arn,
            local.has_tls ? var.tls_secret_arn : null,
            local.has_passwords ? var.credentials_key_secret_arn : null,
            local.has_delegation_tokens ? var.delegation_token_key_secret_arn : null,
            local.has_passwords ? var.admin_password_secret_arn : null,
          ])
        },
      ],
      [for arns in [var.image_repository_arns] : {
        Sid      = "Pull"
        Effect   = "Allow"
        Action   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
        Resource = arns
      } if length(arns) > 0],
      [for key in var.kms_key_arn[*] : {
        Sid      = "Decrypt"
        Effect   = "Allow"
        Action   = ["kms:Decrypt"]
        Resource = [key]
      }],
    )
  })
}

resource "aws_iam_role" "broker" {
  name = "${var.name}-broker"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "broker" {
  name   = "bucket"
  role   = aws_iam_role.broker.id
  policy = var.bucket_policy_json
}

# --- tasks and services

resource "aws_cloudwatch_log_group" "broker" {
  # checkov:skip=CKV_AWS_338:how long logs are kept is the user's choice (log_retention_days)
  # checkov:skip=CKV_AWS_158:CloudWatch encrypts with its own key; a key of one's own is kms_key_arn
  name              = "/${var.name}/broker"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
}

resource "aws_ecs_cluster" "this" {
  name = var.name

  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

resource "aws_ecs_task_definition" "zone" {
  for_each = var.subnet_ids

  family                   = "${var.name}-${each.key}"
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = tostring(var.cpu_units)
  memory                   = tostring(var.memory_mib)
  execution_role_arn       = aws_iam_role.execution.arn
  task_role_arn            = aws_iam_role.broker.arn

  runtime_platform {
    cpu_architecture        = "ARM64"
    operating_system_family = "LINUX"
  }

  volume {
    name = "tmp"
  }

  container_definitions = jsonencode(concat([{
    name                   = local.container
    image                  = var.image
    essential              = true
    entryPoint             = ["/bin/sh", "-c"]
    command                = [var.protocol == "PLAINTEXT" ? local.start : local.secured_start]
    stopTimeout            = var.stop_timeout_s
    readonlyRootFilesystem = true
    mountPoints            = [{ sourceVolume = "tmp", containerPath = "/tmp", readOnly = false }]
    portMappings = [
      { containerPort = local.kafka_port, protocol = "tcp" },
      { containerPort = local.http_port, protocol = "tcp" },
    ]
    environment = [for name, value in local.environment[each.key] : { name = name, value = value }]
    secrets     = local.secrets
    ulimits     = [{ name = "nofile", softLimit = 65536, hardLimit = 65536 }]
    healthCheck = {
      command     = ["CMD", "python", "-P", "-c", local.health_query]
      interval    = 10
      timeout     = 5
      retries     = 3
      startPeriod = 120
    }
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        awslogs-group         = aws_cloudwatch_log_group.broker.name
        awslogs-region        = data.aws_region.here.region
        awslogs-stream-prefix = each.key
      }
    }
    }], [for container in local.admin_containers : merge(container, {
      logConfiguration = {
        logDriver = "awslogs"
        options = {
          awslogs-group         = aws_cloudwatch_log_group.broker.name
          awslogs-region        = data.aws_region.here.region
          awslogs-stream-prefix = "${each.key}-admin"
        }
      }
  })]))
}

resource "aws_ecs_service" "zone" {
  for_each = var.subnet_ids

  name            = "${var.name}-${each.key}"
  cluster         = aws_ecs_cluster.this.id
  task_definition = aws_ecs_task_definition.zone[each.key].arn
  launch_type     = "FARGATE"
  desired_count   = var.brokers_per_zone_min
  propagate_tags  = "SERVICE"

  # a new broker serves before an old one leaves
  deployment_minimum_healthy_percent = 100
  deployment_maximum_percent         = 200
  health_check_grace_period_seconds  = 120

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  network_configuration {
    subnets          = [each.value]
    security_groups  = [aws_security_group.broker.id]
    assign_public_ip = false
  }

  load_balancer {
    target_group_arn = aws_lb_target_group.zone[each.key].arn
    container_name   = local.container
    container_port   = local.kafka_port
  }

  lifecycle {
    ignore_changes = [desired_count] # autoscaling's
  }

  depends_on = [aws_iam_role_policy.broker, aws_iam_role_policy.execution, aws_lb_listener.zone]
}

# --- autoscaling: each zone by itself

resource "aws_appautoscaling_target" "zone" {
  for_each = aws_ecs_service.zone

  service_namespace  = "ecs"
  scalable_dimension = "ecs:service:DesiredCount"
  resource_id        = "service/${aws_ecs_cluster.this.name}/${each.value.name}"
  min_capacity       = var.brokers_per_zone_min
  max_capacity       = var.brokers_per_zone_max
}

resource "aws_appautoscaling_policy" "cpu" {
  for_each = aws_appautoscaling_target.zone

  name               = "cpu"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = each.value.service_namespace
  scalable_dimension = each.value.scalable_dimension
  resource_id        = each.value.resource_id

  target_tracking_scaling_policy_configuration {
    target_value       = var.cpu_target_percent
    scale_in_cooldown  = 300
    scale_out_cooldown = 60

    predefined_metric_specification {
      predefined_metric_type = "ECSServiceAverageCPUUtilization"
    }
  }
}

resource "aws_appautoscaling_policy" "network" {
  for_each = aws_appautoscaling_target.zone

  name               = "network"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = each.value.service_namespace
  scalable_dimension = each.value.scalable_dimension
  resource_id        = each.value.resource_id

  target_tracking_scaling_policy_configuration {
    target_value       = var.network_target_bytes_per_s
    scale_in_cooldown  = 300
    scale_out_cooldown = 60

    customized_metric_specification {
      namespace   = "ECS/ContainerInsights"
      metric_name = "NetworkTxBytes"
      statistic   = "Average"

      dimensions {
        name  = "ClusterName"
        value = aws_ecs_cluster.this.name
      }
      dimensions {
        name  = "ServiceName"
        value = aws_ecs_service.zone[each.key].name
      }
    }
  }
}
