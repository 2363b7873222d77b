# terraform init && terraform test: the provider is a mock, no account is needed.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { region = "us-east-1" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/example-spark" }
  }
}

variables {
  name             = "example"
  bucket_name      = "example-log"
  lake_bucket_name = "example-lake"
  code_bucket_name = "example-code"
}

run "on_arm" {
  command = plan

  assert {
    condition     = aws_emrserverless_application.this.architecture == "ARM64"
    error_message = "Jobs run on another machine than their archive is made for."
  }
}

run "a_release_without_python_data_sources_is_refused" {
  command = plan

  variables {
    release_label = "emr-7.13.0"
  }
  expect_failures = [var.release_label]
}

run "jobs_write_nothing_into_the_log" {
  assert {
    condition = !anytrue(flatten([
      for statement in jsondecode(aws_iam_role_policy.log_and_lake.policy).Statement : [
        for resource in statement.Resource : strcontains(resource, "example-log")
        if length(setsubtract(statement.Action, ["s3:GetObject", "s3:ListBucket"])) > 0
      ]
    ]))
    error_message = "A job may write into the log."
  }
}
