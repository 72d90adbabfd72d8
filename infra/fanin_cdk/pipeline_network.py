"""A VPC for the Spark jobs, from which they reach SQS and EventBridge Scheduler, and with NAT everything."""

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from fanin_cdk.findings import accept

ZONES = 2
"""Availability zones, so that jobs run on when one of them has no capacity."""
ENDPOINTS = {"Sqs": "sqs", "Scheduler": "scheduler", "Logs": "logs"}
"""Services that jobs call and that have no free gateway endpoint, as DynamoDB and S3 have: id → name."""


class PipelineNetwork(Construct):
    """A VPC of its own for the application of a ``Pipeline``; it costs money while no job runs, too.

    Without NAT, its subnets reach S3, DynamoDB, SQS, EventBridge Scheduler and CloudWatch Logs of their
    region and nothing else. That is all that jobs need which work directly on the tables, as those of the
    pipeline do. An HTTP API has no endpoint in a VPC: jobs that call one, or another service, need ``nat``.

    Example:
        A pipeline whose jobs also call the API of a partner::

            network = PipelineNetwork(self, "Network", nat=True)
            Pipeline(self, "Pipeline", tracker=tracker, network=network)

    EMR Serverless does not run in every availability zone of some regions, and refuses subnets elsewhere: in
    us-east-1 it is in use1-az1, use1-az2, use1-az4, use1-az5 and use1-az6 ("Endpoints and quotas", Amazon EMR
    Serverless User Guide). The names of the zones with these ids differ from account to account;
    ``aws ec2 describe-availability-zones`` lists both.

    Args:
        scope: parent construct.
        id: its id there.
        nat: a NAT gateway to the internet, instead of interface endpoints.
        availability_zones: names of the zones of the subnets, such as ``us-east-1a``; None takes the first
            two of the region.

    Attributes:
        vpc: the VPC.
        subnets: the private subnets of the jobs.
        security_group: the security group of the jobs; nothing may connect to them.
    """

    def __init__(
        self, scope: Construct, id: str, *, nat: bool = False, availability_zones: Sequence[str] | None = None
    ) -> None:
        super().__init__(scope, id)
        jobs = ec2.SubnetConfiguration(
            name="Jobs",
            subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS if nat else ec2.SubnetType.PRIVATE_ISOLATED,
            cidr_mask=20,
        )
        public = ec2.SubnetConfiguration(name="Public", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=28)
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            max_azs=None if availability_zones else ZONES,
            availability_zones=availability_zones,
            nat_gateways=1 if nat else 0,
            subnet_configuration=[jobs, public] if nat else [jobs],
            gateway_endpoints={
                "S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3),
                "DynamoDb": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.DYNAMODB),
            },
        )
        accept(self.vpc, "VPC7", "only jobs run there; who may call what is decided and recorded by IAM")
        self.subnets = self.vpc.select_subnets(subnet_group_name="Jobs").subnet_ids
        self.security_group = ec2.SecurityGroup(
            self, "JobsGroup", vpc=self.vpc, description="fanin: Spark jobs", allow_all_outbound=True
        )
        if not nat:
            self._endpoints()

    def _endpoints(self) -> None:
        group = ec2.SecurityGroup(
            self,
            "EndpointsGroup",
            vpc=self.vpc,
            description="fanin: endpoints for Spark jobs",
            allow_all_outbound=False,
        )
        group.add_ingress_rule(self.security_group, ec2.Port.tcp(443))
        for name, service in ENDPOINTS.items():
            self.vpc.add_interface_endpoint(
                name, service=ec2.InterfaceVpcEndpointAwsService(service), security_groups=[group], open=False
            )
