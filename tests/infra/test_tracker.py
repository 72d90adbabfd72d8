"""The tracker in the app of a user, and in its own stack."""

from fanin import names

OUTPUTS = {names.OUTPUT_API_URL, *names.OUTPUTS.values()}


def test_the_environment_is_what_the_library_reads(tracker):
    known = {value for name, value in vars(names).items() if name.startswith("ENV_")}
    # Some belong to functions, two to people and their programs;
    # and the API would take precedence over the tables.
    own = {names.ENV_RETRY_QUEUE_URL, names.ENV_UNROUTED_QUEUE_URL}
    webhooks = {names.ENV_WEBHOOK_HOSTS, names.ENV_WEBHOOK_SECRET_ARN, names.ENV_WEBHOOK_LOOPBACK}
    console = {names.ENV_CONSOLE_ORIGINS, names.ENV_CONSOLE_WRITE, names.ENV_JWT_SCOPE_PREFIX}
    key = {names.ENV_KMS_KEY_ARN}
    programs = {names.ENV_PROFILE, names.ENV_WORK_QUEUE_URL}
    others = {*own, *webhooks, *console, *key, *programs, names.ENV_API_URL, names.ENV_LOG_SAMPLE}
    assert set(tracker.environment) == known - others


def test_the_stack_tells_where_everything_is(fanin):
    assert set(fanin.template.to_json()["Outputs"]) == OUTPUTS
