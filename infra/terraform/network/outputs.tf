output "vpc_id" {
  description = "The VPC."
  value       = local.vpc_id
}

output "vpc_cidr" {
  description = "Its range of addresses."
  value       = local.vpc_cidr
}

output "subnet_ids" {
  description = "A private subnet by zone."
  value       = local.subnet_ids
}

output "s3_prefix_list_id" {
  description = "S3's addresses, for rules of security groups."
  value       = aws_vpc_endpoint.s3.prefix_list_id
}
