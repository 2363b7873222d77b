# Planned on a provider that is a mock: no LocalStack is needed.

mock_provider "aws" {
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::000000000000:role/bucketlog-broker" }
  }
}

run "apply" {
  assert {
    condition     = output.bucket_url == "s3://bucketlog"
    error_message = "Brokers get a wrong address."
  }
}
