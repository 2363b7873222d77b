# Runs without AWS and without a provider: terraform -chdir=infra/terraform/policies test

variables {
  bucket_name        = "example-log"
  bucket_prefix      = "prod"
  deleting_role_arns = ["arn:aws:iam::123456789012:role/bucketlog-broker"]
}

run "writes_are_create_only" {
  command = plan

  assert {
    condition = anytrue([
      for statement in jsondecode(output.bucket).Statement :
      statement.Effect == "Deny" && statement.Principal == "*" && contains(statement.Action, "s3:PutObject")
      && try(statement.Condition.Null["s3:if-none-match"], "") == "true"
      && contains(statement.Resource, "arn:aws:s3:::example-log/*")
    ])
    error_message = "The bucket's policy lets a PUT without If-None-Match through."
  }
}

run "only_brokers_delete" {
  command = plan

  assert {
    condition = anytrue([
      for statement in jsondecode(output.bucket).Statement :
      statement.Effect == "Deny" && contains(statement.Action, "s3:DeleteObject")
      && try(statement.Condition.ArnNotEquals["aws:PrincipalArn"], []) == ["arn:aws:iam::123456789012:role/bucketlog-broker"]
    ])
    error_message = "The bucket's policy lets others delete."
  }
  assert {
    condition = !anytrue(flatten([
      for statement in jsondecode(output.broker).Statement : [
        for resource in statement.Resource : endswith(resource, "/0/*") || endswith(resource, "/epochs/*")
      ] if contains(statement.Action, "s3:DeleteObject")
    ]))
    error_message = "Brokers may delete more than they do."
  }
}

run "readers_write_nothing" {
  command = plan

  assert {
    condition = toset(flatten([for statement in jsondecode(output.reader).Statement : statement.Action])) == toset(
      ["s3:GetObject", "s3:ListBucket"]
    )
    error_message = "A reader may do more than read."
  }
}

run "no_role_may_delete_is_refused" {
  command = plan

  variables {
    deleting_role_arns = []
  }
  expect_failures = [var.deleting_role_arns]
}

run "a_lake_in_the_log_is_refused" {
  command = plan

  variables {
    lake_bucket_name = "example-log"
  }
  expect_failures = [var.lake_bucket_name]
}
