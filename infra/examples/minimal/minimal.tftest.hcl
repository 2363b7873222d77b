# The whole example, planned and applied by Terraform on providers that are mocks: no account is
# needed, and AWS says nothing to it.

mock_provider "aws" {
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { region = "us-east-1" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/bucketlog-broker" }
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
  image                 = "123456789012.dkr.ecr.us-east-1.amazonaws.com/bucketlog:1"
  image_repository_arns = ["arn:aws:ecr:us-east-1:123456789012:repository/bucketlog"]
}

run "plan" {
  command = plan
}

run "apply" {
  assert {
    condition     = output.bootstrap == "bootstrap.example:9092" && output.bucket_url == "s3://example-log"
    error_message = "Clients or readers get a wrong address."
  }
}
