# A VPC without a way to the internet: S3 by a gateway endpoint (free, and its bytes too), the few
# other services of AWS by interface endpoints. Or a VPC that is there, which gets the endpoints.

data "aws_region" "here" {}

locals {
  makes_vpc = var.existing_vpc == null
  vpc_id    = local.makes_vpc ? aws_vpc.this[0].id : var.existing_vpc.vpc_id
  vpc_cidr  = local.makes_vpc ? var.cidr : var.existing_vpc.cidr
  subnet_ids = {
    for zone in var.zones :
    zone => local.makes_vpc ? aws_subnet.private[zone].id : var.existing_vpc.subnet_ids[zone]
  }
  route_table_ids = local.makes_vpc ? [aws_route_table.private[0].id] : var.existing_vpc.route_table_ids
  endpoint_zones  = slice(var.zones, 0, min(var.endpoint_zones_max, length(var.zones)))
  has_endpoints   = length(var.interface_endpoints) > 0
  has_flow_logs   = local.makes_vpc && var.flow_log_retention_days > 0
}

resource "aws_vpc" "this" {
  # checkov:skip=CKV2_AWS_11:flow logs are the user's choice (flow_log_retention_days); they are billed by the gigabyte
  count = local.makes_vpc ? 1 : 0

  cidr_block           = var.cidr
  enable_dns_hostnames = true
  enable_dns_support   = true

  tags = { Name = var.name }
}

# takes all rules away from the group that every VPC begins with
resource "aws_default_security_group" "closed" {
  count = local.makes_vpc ? 1 : 0

  vpc_id = aws_vpc.this[0].id
}

resource "aws_subnet" "private" {
  for_each = local.makes_vpc ? toset(var.zones) : toset([])

  vpc_id            = aws_vpc.this[0].id
  availability_zone = each.key
  cidr_block        = cidrsubnet(var.cidr, 3, index(var.zones, each.key))

  tags = { Name = "${var.name}-${each.key}" }
}

resource "aws_route_table" "private" {
  count = local.makes_vpc ? 1 : 0

  vpc_id = aws_vpc.this[0].id

  tags = { Name = var.name }
}

resource "aws_route_table_association" "private" {
  for_each = aws_subnet.private

  subnet_id      = each.value.id
  route_table_id = aws_route_table.private[0].id
}

resource "aws_vpc_endpoint" "s3" {
  vpc_id            = local.vpc_id
  service_name      = "com.amazonaws.${data.aws_region.here.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = local.route_table_ids

  tags = { Name = "${var.name}-s3" }
}

resource "aws_security_group" "endpoints" {
  count = local.has_endpoints ? 1 : 0

  name        = "${var.name}-endpoints"
  description = "Interface endpoints: HTTPS from within the VPC."
  vpc_id      = local.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "endpoints" {
  count = local.has_endpoints ? 1 : 0

  security_group_id = aws_security_group.endpoints[0].id
  description       = "HTTPS from within the VPC"
  cidr_ipv4         = local.vpc_cidr
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_endpoint" "interface" {
  for_each = var.interface_endpoints

  vpc_id              = local.vpc_id
  service_name        = "com.amazonaws.${data.aws_region.here.region}.${each.key}"
  vpc_endpoint_type   = "Interface"
  private_dns_enabled = true
  subnet_ids          = [for zone in local.endpoint_zones : local.subnet_ids[zone]]
  security_group_ids  = aws_security_group.endpoints[*].id

  tags = { Name = "${var.name}-${each.key}" }
}

resource "aws_cloudwatch_log_group" "flow" {
  # checkov:skip=CKV_AWS_338:how long flow logs are kept is the user's choice (flow_log_retention_days)
  # checkov:skip=CKV_AWS_158:CloudWatch encrypts with its own key; a key of one's own is kms_key_arn
  count = local.has_flow_logs ? 1 : 0

  name              = "/${var.name}/vpc"
  retention_in_days = var.flow_log_retention_days
  kms_key_id        = var.kms_key_arn
}

resource "aws_iam_role" "flow" {
  count = local.has_flow_logs ? 1 : 0

  name = "${var.name}-flow-logs"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "vpc-flow-logs.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "flow" {
  count = local.has_flow_logs ? 1 : 0

  name = "write"
  role = aws_iam_role.flow[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
      Resource = ["${aws_cloudwatch_log_group.flow[0].arn}:*"]
    }]
  })
}

resource "aws_flow_log" "this" {
  count = local.has_flow_logs ? 1 : 0

  vpc_id          = aws_vpc.this[0].id
  traffic_type    = "ALL"
  iam_role_arn    = aws_iam_role.flow[0].arn
  log_destination = aws_cloudwatch_log_group.flow[0].arn
}
