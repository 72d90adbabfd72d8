"""What a deployment costs while nothing happens, computed from the template."""

import json
import re
from pathlib import Path

import pytest

from fanin.domain import planning
from fanin.domain.costs import ACCESS_LINE
from fanin.domain.prices import DEFAULT

ROOT = Path(__file__).resolve().parents[2]


def counted(fanin) -> planning.Usage:
    """What the template has that costs money every month."""
    alarms = fanin.of_type("AWS::CloudWatch::Alarm").values()
    metrics = sum(
        sum("MetricStat" in query for query in alarm["Metrics"]) if "Metrics" in alarm else 1
        for alarm in alarms
    )
    queues = fanin.of_type("AWS::SQS::Queue")
    polled = [
        source
        for source in fanin.of_type("AWS::Lambda::EventSourceMapping").values()
        if source["EventSourceArn"]["Fn::GetAtt"][0] in queues
    ]
    rates = [
        rule
        for rule in fanin.of_type("AWS::Events::Rule").values()
        if rule.get("ScheduleExpression", "") == "rate(5 minutes)"
    ]
    return planning.idle(
        alarm_metrics=metrics,
        dashboards=len(fanin.of_type("AWS::CloudWatch::Dashboard")),
        polled_queues=len(polled),
        rates=len(rates),
        secrets=len(fanin.of_type("AWS::SecretsManager::Secret")),
    )


def test_the_plan_of_an_idle_month_is_what_the_template_costs(fanin):
    assert counted(fanin) == planning.idle()


def test_nothing_else_of_the_template_costs_by_the_month(fanin):
    """Of these types only alarms, dashboards, mappings and rates do; a new type must be looked at."""
    kinds = {resource["Type"] for resource in fanin.resources.values()}
    assert kinds <= {
        *("AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "AWS::Lambda::EventSourceMapping"),
        *("AWS::Events::Rule", "AWS::Events::EventBus", "AWS::Scheduler::ScheduleGroup"),
        *("AWS::SQS::Queue", "AWS::SQS::QueuePolicy", "AWS::S3::Bucket", "AWS::S3::BucketPolicy"),
        *("AWS::Lambda::Function", "AWS::Lambda::LayerVersion", "AWS::Lambda::Permission"),
        *("AWS::Lambda::EventInvokeConfig", "AWS::Logs::LogGroup", "AWS::IAM::Role", "AWS::IAM::Policy"),
        *("AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Integration", "AWS::ApiGatewayV2::Route"),
        *("AWS::ApiGatewayV2::Stage", "AWS::DynamoDB::Table", "Custom::FaninLeftovers"),
    }


def test_a_deployment_without_alarms_and_dashboard_pays_for_polls_only(frugal):
    assert counted(frugal).bill(DEFAULT)["watching"] == 0
    assert counted(frugal).dollars(DEFAULT) < 3


def test_the_documentation_has_the_cost_of_an_idle_month(fanin, frugal):
    page = (ROOT / "docs" / "explanation" / "costs.md").read_text()
    rows = re.findall(r"^\| \*\*in all\*\* \|[^|]*\| ([\d.]+) \| ([\d.]+) \|", page, re.MULTILINE)
    assert rows[0] == tuple(f"{counted(one).dollars(DEFAULT):.2f}" for one in (fanin, frugal))


def test_the_length_of_a_line_of_the_access_log_is_what_the_plan_takes(fanin):
    values = {
        "$context.requestId": "JKJaXmPLvHcESHA=",
        "$context.requestTime": "25/Nov/2026:09:40:00 +0000",
        "$context.identity.sourceIp": "203.0.113.217",
        "$context.identity.userArn": "arn:aws:sts::123456789012:assumed-role/shop-Consumer-1A/shop-rows",
        "$context.httpMethod": "POST",
        "$context.path": "/v1/acks",
        "$context.routeKey": "ANY /v1/{proxy+}",
        "$context.status": "200",
        "$context.responseLatency": "14",
        "$context.responseLength": "152",
    }
    stage = next(iter(fanin.of_type("AWS::ApiGatewayV2::Stage").values()))
    written = json.loads(stage["AccessLogSettings"]["Format"])
    line = json.dumps(
        {name: values.get(value, "-") for name, value in written.items()}, separators=(",", ":")
    )
    assert len(line) == pytest.approx(ACCESS_LINE, rel=0.1)
