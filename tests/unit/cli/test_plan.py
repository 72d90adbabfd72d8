"""fanin plan."""

import json

import pytest

from fanin.domain.prices import DEFAULT


def ways(document):
    return {way["way"]: way for way in [*document["ways"], *document["alternatives"]]}


@pytest.mark.parametrize(
    "written", ["10000", "1e4", "10_000", "10,000", "1.0E+4", "0.001e7", "10k", "10K", "0.01M"]
)
def test_a_number_may_be_written_in_several_ways(run, written):
    assert run("plan", written, "--json").document["items"] == 10_000


@pytest.mark.parametrize(
    "args", [("0",), ("1.5",), ("1e99",), ("",), ("10", "--together", "0"), ("10", "--order", "sorted")]
)
def test_nonsense_is_wrong_usage(run, args):
    assert run("plan", *args).exit_code == 2


def test_the_whole_bill_is_shown_by_service(run):
    found = ways(run("plan", "1e6", "--json").document)
    one = found["HTTPS, one item a call"]
    assert one["bill"]["API"] == pytest.approx(1.0, rel=0.001)
    assert one["dollars"] == pytest.approx(sum(one["bill"].values()), abs=1e-4)
    assert one["dollars"] > 3 * one["bill"]["DynamoDB"]
    assert set(found) >= {
        "Step Functions Standard",
        "Lambda durable functions",
        "Valkey, ElastiCache Serverless",
    }


def test_neighbours_are_cheaper_than_scattered_items(run):
    scattered = ways(run("plan", "1e6", "--json").document)
    neighbours = ways(run("plan", "1e6", "--order", "neighbours", "--json").document)
    for way in ("HTTPS, 10 items a call", "ack queue, 10 items a message", "direct, 10 items a call"):
        assert neighbours[way]["dollars"] < scattered[way]["dollars"] / 2


def test_a_higher_rate_makes_the_ack_queue_cheaper(run):
    way = "ack queue, 10 items a message"
    slow, fast = (ways(run("plan", "1e6", "--rate", rate, "--json").document)[way] for rate in (10, 10_000))
    assert fast["dollars"] < slow["dollars"]


def test_prices_of_another_region(run):
    here, there = (
        run("plan", "1e6", "--region", region, "--json").document for region in ("us-east-1", "eu-west-1")
    )
    assert there["prices"]["region"] == "eu-west-1"
    assert there["ways"][0]["dollars"] > here["ways"][0]["dollars"]


def test_an_unknown_region_is_refused(run):
    refused = run("plan", "1e6", "--region", "mars-1")
    assert refused.exit_code == 2
    assert "us-east-1, eu-west-1" in " ".join(refused.stderr.split())


def test_prices_of_ones_own(run, tmp_path):
    file = tmp_path / "prices.json"
    file.write_text('{"write": 6.25}')
    ours = run("plan", "1e6", "--json").document
    theirs = run("plan", "1e6", "--prices", file, "--json").document
    counter = "counter in DynamoDB"
    assert ways(theirs)[counter]["dollars"] == pytest.approx(10 * ways(ours)[counter]["dollars"])
    assert str(file) in " ".join(run("plan", "1e6", "--prices", file).stderr.split()).replace(" ", "")


@pytest.mark.parametrize("text", ["{", "[1]", '{"write": "dear"}', '{"wirte": 1}', None])
def test_a_file_that_holds_no_prices_is_refused_by_name(run, tmp_path, text):
    file = tmp_path / "prices.json"
    if text is not None:
        file.write_text(text)
    refused = run("plan", "1e6", "--prices", file)
    assert refused.exit_code == 2
    assert "prices.json" in refused.stderr.replace("\n", "")


def test_what_was_printed_can_be_edited_and_given_back_as_a_whole_or_the_prices_alone(run, tmp_path):
    printed = run("plan", "1e6", "--region", "eu-west-1", "--json").document
    file = tmp_path / "prices.json"
    file.write_text(json.dumps(printed["prices"]))
    assert run("plan", "1e6", "--prices", file, "--json").document["ways"] == printed["ways"]

    printed["prices"]["write"] *= 2
    file.write_text(json.dumps(printed))
    taken = run("plan", "1e6", "--prices", file, "--json").document["prices"]
    assert taken["write"] == printed["prices"]["write"]
    assert taken["read"] == printed["prices"]["read"]


def test_an_unknown_region_takes_prices_of_ones_own_and_says_which_are_assumed(run, tmp_path):
    file = tmp_path / "prices.json"
    file.write_text('{"write": 0.9}')
    taken = run("plan", "1e6", "--region", "sa-east-1", "--prices", file, "--json").document["prices"]
    assert (taken["region"], taken["write"], taken["read"]) == ("sa-east-1", 0.9, DEFAULT.read)
    assert "read" in taken["assumed"]
    assert "write" not in taken["assumed"]


def test_people_see_the_prices_and_since_when(run):
    shown = run("plan", "1e6")
    assert f"{DEFAULT.region}, {DEFAULT.since}" in shown.stderr
    assert "\t25.000025\n" in shown.stdout
    assert "assumed as in us-east-1" in run("plan", "1e6", "--region", "ap-northeast-1").stderr


def test_ranges_of_a_batch_with_totals_are_said_to_take_a_write_for_64_items(run):
    way = ways(run("plan", 6_400_000, "--json").document)["ranges of a batch with totals, direct"]
    assert 100_000 < way["writes"] < 104_000
    assert "a write for 64 items" in run("plan", 6_400_000).stderr


def test_an_idle_month_is_part_of_the_answer(run):
    month = run("plan", 1, "--json").document["idle_month"]
    assert 5 < month["dollars"] < 10
    assert f"costs ${month['dollars']:.2f} a month" in run("plan", 1).stderr


def taken(document, way):
    return {one["quota"]: one["needed"] for one in document["quotas"] if one["way"] == way}


def test_the_quotas_follow_from_the_rate_and_the_work_of_an_item(run):
    # Given 20,000 items a second, which consumers on Lambda work on for a fifth of a second each
    document = run("plan", "1e6", "--rate", "20000", "--item-ms", "200", "--json").document
    # Then 4,000 of them work at a time, and the API's function beside them
    one, ten = (taken(document, f"HTTPS, {how} a call") for how in ("one item", "10 items"))
    assert 4_000 < ten["Concurrent executions"] < one["Concurrent executions"] < 4_250
    # And a call for each item is more than an account has; one for ten is not
    assert one["Throttle rate"] == pytest.approx(20_000, rel=0.01)
    assert ten["Throttle rate"] == pytest.approx(2_000, rel=0.01)
    assert ten["Table-level write throughput limit"] == pytest.approx(20_320, rel=0.01)
    # And so the text says
    text = run("plan", "1e6", "--rate", "20000", "--item-ms", "200").stderr
    assert "requests a second (an account has 10,000: raise Throttle rate)" in text
    assert text.count("raise Throttle rate") == 1
    assert text.count("raise Concurrent executions") == 4


def test_each_batch_has_an_event_and_may_have_a_deadline(run):
    # Given batches of a single item, a hundred a second
    found = taken(run("plan", "1", "--rate", "100", "--json").document, "direct, 10 items a call")
    assert found["CreateSchedule request rate"] == 100
    assert found["PutEvents throttle limit in transactions per second"] == 100
