output "bucket" {
  description = "The bucket's policy: TLS, create-only writes, deletes by brokers alone."
  value       = jsonencode({ Version = "2012-10-17", Statement = local.bucket_statements })
}

output "broker" {
  description = "What a broker may do: read, list, create, and delete what is over."
  value = jsonencode({
    Version   = "2012-10-17"
    Statement = concat([local.list], [local.read], [local.create], [local.delete], local.encrypt)
  })
}

output "reader" {
  description = "What a reader of the log may do: list and read."
  value = jsonencode({
    Version   = "2012-10-17"
    Statement = concat([local.list], [local.read], local.decrypt)
  })
}

output "spark" {
  description = "What a job of Spark may do: read the log, and write the lake if there is one."
  value = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [local.list], [local.read], local.decrypt,
      [for statement in local.lake_statements : statement if var.lake_bucket_name != null],
    )
  })
}
