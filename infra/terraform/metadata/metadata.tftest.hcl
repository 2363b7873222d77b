# terraform init && terraform test: the providers are mocks, no account is needed.

mock_provider "aws" {}

mock_provider "random" {}

variables {
  name                     = "example"
  vpc_id                   = "vpc-1"
  subnet_ids               = ["subnet-1", "subnet-2"]
  broker_security_group_id = "sg-1"
}

run "nothing_is_evicted" {
  command = plan

  assert {
    condition     = anytrue([for parameter in aws_elasticache_parameter_group.noeviction.parameter : parameter.name == "maxmemory-policy" && parameter.value == "noeviction"])
    error_message = "Brokers refuse a server that may evict."
  }
  assert {
    condition     = aws_elasticache_replication_group.this.transit_encryption_enabled && aws_elasticache_replication_group.this.multi_az_enabled
    error_message = "No TLS, or one zone."
  }
}

run "the_user_may_not_flush" {
  command = plan

  assert {
    condition     = strcontains(aws_elasticache_user.broker.access_string, "-@all") && !strcontains(aws_elasticache_user.broker.access_string, "flush")
    error_message = "The brokers' user may do more than it needs."
  }
}

run "without_replica_without_failover" {
  command = plan

  variables {
    replicas = 0
  }

  assert {
    condition     = !aws_elasticache_replication_group.this.automatic_failover_enabled && length(output.node_ids) == 1
    error_message = "AWS refuses failover without a replica."
  }
}
