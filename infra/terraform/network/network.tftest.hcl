# terraform init && terraform test: the provider is a mock, no account is needed.

mock_provider "aws" {
  mock_data "aws_region" {
    defaults = { region = "us-east-1" }
  }
}

variables {
  name  = "example"
  zones = ["us-east-1a", "us-east-1b", "us-east-1c"]
}

run "a_private_subnet_in_each_zone" {
  command = plan

  assert {
    condition     = length(aws_subnet.private) == 3 && length(toset([for subnet in aws_subnet.private : subnet.cidr_block])) == 3
    error_message = "Not each zone has a subnet of its own."
  }
  assert {
    condition     = aws_vpc_endpoint.s3.service_name == "com.amazonaws.us-east-1.s3"
    error_message = "S3 is not reached by its endpoint."
  }
}

run "a_vpc_that_is_there_is_used" {
  command = plan

  variables {
    existing_vpc = {
      vpc_id          = "vpc-1"
      cidr            = "10.0.0.0/16"
      subnet_ids      = { us-east-1a = "subnet-1", us-east-1b = "subnet-2", us-east-1c = "subnet-3" }
      route_table_ids = ["rtb-1"]
    }
  }

  assert {
    condition     = length(aws_vpc.this) == 0 && length(aws_subnet.private) == 0 && output.vpc_id == "vpc-1"
    error_message = "Another VPC is made."
  }
}

run "no_zone_is_refused" {
  command = plan

  variables {
    zones = []
  }
  expect_failures = [var.zones]
}
