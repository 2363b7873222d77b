# terraform init && terraform test: the provider is a mock, no account is needed.

mock_provider "aws" {
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
}

variables {
  bucket_name        = "example-log"
  bucket_prefix      = "prod"
  deleting_role_arns = ["arn:aws:iam::123456789012:role/bucketlog-broker"]
}

run "nothing_is_public_and_versions_are_kept" {
  command = plan

  assert {
    condition     = aws_s3_bucket_public_access_block.log.block_public_policy && aws_s3_bucket_public_access_block.log.restrict_public_buckets
    error_message = "The bucket may be public."
  }
  assert {
    condition     = aws_s3_bucket_versioning.log.versioning_configuration[0].status == "Enabled"
    error_message = "What is deleted by mistake is gone."
  }
}

run "the_policy_denies_writes_without_a_condition" {
  command = plan

  assert {
    condition = anytrue([
      for statement in jsondecode(aws_s3_bucket_policy.log.policy).Statement :
      statement.Effect == "Deny" && try(statement.Condition.Null["s3:if-none-match"], "") == "true"
    ])
    error_message = "A PUT without If-None-Match is let through."
  }
}

run "no_reader_no_role" {
  command = plan

  assert {
    condition     = length(aws_iam_role.reader) == 0
    error_message = "There is a reader's role that nobody can take on."
  }
}

run "a_long_name_has_a_reader" {
  command = plan

  variables {
    bucket_name           = "example-of-a-bucket-whose-name-is-as-long-as-s3-allows-63-chars"
    reader_principal_arns = ["arn:aws:iam::123456789012:role/analyst"]
  }

  assert {
    condition     = length(aws_iam_role.reader[0].name) <= 64
    error_message = "IAM refuses the name of the reader's role."
  }
}

run "a_dot_in_the_name_is_refused" {
  command = plan

  variables {
    bucket_name = "example.log"
  }
  expect_failures = [var.bucket_name]
}

run "objects_are_encrypted_with_kms" {
  command = plan

  assert {
    condition = alltrue([
      for rule in aws_s3_bucket_server_side_encryption_configuration.log.rule :
      rule.bucket_key_enabled && rule.apply_server_side_encryption_by_default[0].sse_algorithm == "aws:kms"
    ])
    error_message = "S3 encrypts without KMS, or asks KMS for each object."
  }
}

run "a_key_that_has_no_effect_is_refused" {
  command = plan

  variables {
    sse_kms     = false
    kms_key_arn = "arn:aws:kms:us-east-1:123456789012:key/k"
  }
  expect_failures = [var.kms_key_arn]
}
