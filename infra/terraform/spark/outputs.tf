output "application_id" {
  description = "The EMR Serverless application."
  value       = aws_emrserverless_application.this.id
}

output "job_role_arn" {
  description = "The role of jobs."
  value       = aws_iam_role.job.arn
}

output "submit" {
  description = "How to run s3://CODE/job.py, with what docs/spark.md makes (`make package`, venv-pack on ARM64)."
  value = join(" ", [
    "aws emr-serverless start-job-run",
    "--application-id ${aws_emrserverless_application.this.id}",
    "--execution-role-arn ${aws_iam_role.job.arn}",
    "--configuration-overrides '${jsonencode({ monitoringConfiguration = { cloudWatchLoggingConfiguration = { enabled = true, logGroupName = aws_cloudwatch_log_group.jobs.name } } })}'",
    "--job-driver '${jsonencode({ sparkSubmit = {
      entryPoint = "s3://${var.code_bucket_name}/job.py"
      sparkSubmitParameters = join(" ", [
        "--py-files s3://${var.code_bucket_name}/bucketlog-spark.zip",
        "--archives s3://${var.code_bucket_name}/needed.tar.gz#environment",
        "--conf spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON=./environment/bin/python",
        "--conf spark.emr-serverless.driverEnv.PYSPARK_PYTHON=./environment/bin/python",
        "--conf spark.executorEnv.PYSPARK_PYTHON=./environment/bin/python",
      ])
    } })}'",
  ])
}
