# terraform init && terraform test: the provider is a mock, no account is needed.

mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { region = "us-east-1" }
  }
}

variables {
  name                        = "example"
  vpc_id                      = "vpc-1"
  subnet_ids                  = { us-east-1a = "subnet-1", us-east-1b = "subnet-2" }
  s3_prefix_list_id           = "pl-1"
  endpoint_cidr               = "10.20.0.0/16"
  sequencer_security_group_id = "sg-1"
  client_cidrs                = { vpc = "10.20.0.0/16" }
  image                       = "123456789012.dkr.ecr.us-east-1.amazonaws.com/bucketlog:1"
  image_repository_arns       = ["arn:aws:ecr:us-east-1:123456789012:repository/bucketlog"]
  bucket_url                  = "s3://example-log/prod"
  bucket_policy_json          = "{\"Version\":\"2012-10-17\",\"Statement\":[]}"
  redis_url_secret_arn        = "arn:aws:secretsmanager:us-east-1:123456789012:secret:redis-url"
}

run "each_zone_has_brokers_that_know_it" {
  command = plan

  assert {
    condition = alltrue([
      for zone in ["us-east-1a", "us-east-1b"] : contains(
        [for setting in jsondecode(aws_ecs_task_definition.zone[zone].container_definitions)[0].environment : "${setting.name}=${setting.value}"],
        "BUCKETLOG_ZONE=${zone}",
      )
    ])
    error_message = "Brokers do not know their zone."
  }
  assert {
    condition     = aws_lb_listener.zone["us-east-1a"].port == 9092 && aws_lb_listener.zone["us-east-1b"].port == 9093
    error_message = "Two zones share a port of the load balancer."
  }
}

run "the_internet_as_clients_is_refused" {
  command = plan

  variables {
    client_cidrs = { all = "0.0.0.0/0" }
  }
  expect_failures = [var.client_cidrs]
}

run "settings_of_the_module_are_its_own" {
  command = plan

  variables {
    settings = { BUCKETLOG_PORT = "1" }
  }
  expect_failures = [var.settings]
}

run "memory_that_fargate_does_not_sell_is_refused" {
  command = plan

  variables {
    cpu_units  = 512
    memory_mib = 8192
  }
  expect_failures = [var.memory_mib]
}

run "tls_and_logins_end_at_the_brokers" {
  command = plan

  variables {
    protocol                   = "SASL_SSL"
    tls_secret_arn             = "arn:aws:secretsmanager:us-east-1:123456789012:secret:tls"
    client_auth                = "requested"
    credentials_key_secret_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:keys"
    admin_password_secret_arn  = "arn:aws:secretsmanager:us-east-1:123456789012:secret:admin"
    authorization              = true
    super_users                = ["User:admin"]

    delegation_token_key_secret_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:tokens"
  }

  assert {
    condition     = alltrue([for listener in aws_lb_listener.zone : listener.protocol == "TCP"])
    error_message = "TLS does not pass through the load balancer."
  }
  assert {
    condition = alltrue([
      for container in jsondecode(aws_ecs_task_definition.zone["us-east-1a"].container_definitions) :
      length([for variable in lookup(container, "environment", []) : variable if strcontains(variable.value, "secretsmanager")]) == 0
    ])
    error_message = "A secret is in a variable that everybody may read."
  }
}

run "tls_without_a_certificate_is_refused" {
  command = plan

  variables {
    protocol = "SSL"
  }
  expect_failures = [var.tls_secret_arn]
}

run "logins_without_a_key_are_refused" {
  command = plan

  variables {
    protocol = "SASL_PLAINTEXT"
  }
  expect_failures = [var.credentials_key_secret_arn]
}

run "delegation_tokens_without_scram_are_refused" {
  command = plan

  variables {
    protocol                        = "SASL_SSL"
    tls_secret_arn                  = "arn:aws:secretsmanager:us-east-1:123456789012:secret:tls"
    credentials_key_secret_arn      = "arn:aws:secretsmanager:us-east-1:123456789012:secret:keys"
    sasl_mechanisms                 = ["PLAIN"]
    delegation_token_key_secret_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:tokens"
  }
  expect_failures = [var.delegation_token_key_secret_arn]
}

run "tokens_of_a_provider_need_no_key" {
  command = plan

  variables {
    protocol        = "SASL_SSL"
    tls_secret_arn  = "arn:aws:secretsmanager:us-east-1:123456789012:secret:tls"
    sasl_mechanisms = ["OAUTHBEARER"]
    oauthbearer = {
      jwks_url       = "https://login.example.com/certs"
      issuer         = "https://login.example.com"
      audiences      = ["kafka", "tests"]
      sub_claim_name = "azp"
      cidr           = "203.0.113.7/32"
    }
  }

  assert {
    condition = alltrue([
      for name, value in {
        BUCKETLOG_SASL_MECHANISMS            = "OAUTHBEARER"
        BUCKETLOG_OAUTHBEARER_JWKS_URL       = "https://login.example.com/certs"
        BUCKETLOG_OAUTHBEARER_ISSUER         = "https://login.example.com"
        BUCKETLOG_OAUTHBEARER_AUDIENCES      = "kafka,tests"
        BUCKETLOG_OAUTHBEARER_SUB_CLAIM_NAME = "azp"
      } :
      contains(jsondecode(aws_ecs_task_definition.zone["us-east-1a"].container_definitions)[0].environment, { name = name, value = value })
    ])
    error_message = "The broker does not know the provider of tokens."
  }
  assert {
    condition     = !strcontains(aws_ecs_task_definition.zone["us-east-1a"].container_definitions, "CREDENTIALS_KEY")
    error_message = "Tokens need no key for credentials."
  }
  assert {
    condition     = keys(aws_vpc_security_group_egress_rule.broker_provider) == ["203.0.113.7/32"]
    error_message = "Brokers cannot reach the provider of tokens."
  }
}

run "tokens_without_tls_are_refused" {
  command = plan

  variables {
    protocol        = "SASL_PLAINTEXT"
    sasl_mechanisms = ["OAUTHBEARER"]
    oauthbearer     = { jwks_url = "https://login.example.com/certs", issuer = "x", audiences = ["kafka"] }
  }
  expect_failures = [var.sasl_mechanisms]
}

run "tokens_without_a_provider_are_refused" {
  command = plan

  variables {
    protocol        = "SASL_SSL"
    tls_secret_arn  = "arn:aws:secretsmanager:us-east-1:123456789012:secret:tls"
    sasl_mechanisms = ["OAUTHBEARER"]
  }
  expect_failures = [var.oauthbearer]
}

run "keys_over_plain_http_are_refused" {
  command = plan

  variables {
    protocol        = "SASL_SSL"
    tls_secret_arn  = "arn:aws:secretsmanager:us-east-1:123456789012:secret:tls"
    sasl_mechanisms = ["OAUTHBEARER"]
    oauthbearer     = { jwks_url = "http://login.example.com/certs", issuer = "x", audiences = ["kafka"] }
  }
  expect_failures = [var.oauthbearer]
}

run "tenants_are_told_by_logins" {
  command = plan

  variables {
    protocol                   = "SASL_SSL"
    tls_secret_arn             = "arn:aws:secretsmanager:us-east-1:123456789012:secret:tls"
    credentials_key_secret_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:keys"
    authorization              = true
    super_users                = ["User:admin"]
    tenants_file               = "[acme]\n\n[globex]\n"
  }

  assert {
    condition = alltrue([
      for name, value in {
        BUCKETLOG_LISTENERS           = "SASL_SSL://0.0.0.0:9092"
        BUCKETLOG_SUPER_USERS         = "User:admin"
        BUCKETLOG_TENANTS_FILE        = "/tmp/security/tenants.toml"
        BUCKETLOG_TENANT_SERVER_NAMES = "false"
        TENANTS_TOML                  = "[acme]\n\n[globex]\n"
      } :
      contains(jsondecode(aws_ecs_task_definition.zone["us-east-1a"].container_definitions)[0].environment, { name = name, value = value })
    ])
    error_message = "Brokers do not know their tenants."
  }
  assert {
    condition     = strcontains(jsondecode(aws_ecs_task_definition.zone["us-east-1a"].container_definitions)[0].command[0], "\"$TENANTS_TOML\" > /tmp/security/tenants.toml")
    error_message = "Tasks do not write the file of tenants."
  }
}

run "tenants_without_logins_are_refused" {
  command = plan

  variables {
    protocol       = "SSL"
    tls_secret_arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:tls"
    tenants_file   = "[acme]"
  }
  expect_failures = [var.tenants_file]
}
