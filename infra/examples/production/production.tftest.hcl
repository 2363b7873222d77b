# The whole example, planned and applied by Terraform on providers that are mocks: no account is
# needed, and AWS says nothing to it.

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
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:us-east-1:123456789012:log-group:any" }
  }
  mock_resource "aws_emrserverless_application" {
    defaults = { id = "application-1" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/bucketlog-broker" }
  }
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:us-east-1:123456789012:key/any" }
  }
  mock_resource "aws_lb" {
    defaults = { dns_name = "bootstrap.example", arn_suffix = "net/bootstrap/1" }
  }
  mock_resource "aws_secretsmanager_secret_version" {
    defaults = { arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:url" }
  }
  mock_resource "aws_security_group" {
    defaults = { id = "sg-1" }
  }
  mock_resource "aws_sns_topic" {
    defaults = { arn = "arn:aws:sns:us-east-1:123456789012:alarms" }
  }
  mock_resource "aws_vpc" {
    defaults = { id = "vpc-1" }
  }
  mock_resource "aws_vpc_endpoint" {
    defaults = { prefix_list_id = "pl-1" }
  }
}

mock_provider "random" {}

variables {
  bucket_name           = "example-log"
  lake_bucket_name      = "example-lake"
  code_bucket_name      = "example-code"
  reader_principal_arns = ["arn:aws:iam::123456789012:role/analyst"]
  client_cidrs          = { applications = "10.30.0.0/16" }
  image                 = "123456789012.dkr.ecr.us-east-1.amazonaws.com/bucketlog:1"
  image_repository_arns = ["arn:aws:ecr:us-east-1:123456789012:repository/bucketlog"]
}

run "plan" {
  command = plan
}

run "apply" {
  assert {
    condition     = output.bootstrap == "bootstrap.example:9092,bootstrap.example:9093,bootstrap.example:9094"
    error_message = "Not each zone has an address to begin with."
  }
  assert {
    condition     = output.bucket_url == "s3://example-log/prod" && output.reader_role_arn != null
    error_message = "Readers cannot read."
  }
  assert {
    condition     = strcontains(output.spark_submit, "--application-id application-1 ")
    error_message = "The command for Spark names another application."
  }
}
