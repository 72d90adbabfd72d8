"""The pipeline's demo: its data is made well."""

from examples.fleet.analytics.cars import spoilt, telemetry


def test_some_rows_arrive_spoilt_and_none_is_lost():
    # Given the rows as they are
    trips, _ = telemetry(3)
    # When they arrive
    arrived = list(spoilt(trips, "seed"))
    # Then a few are there twice, a few are not as they were, and the others are
    good_ones = {tuple(row.values()) for row in trips}
    hurt = [row for row in arrived if tuple(row.values()) not in good_ones]
    twice = len(arrived) - len(trips)
    assert 0 < twice < len(trips) / 50
    assert 0 < len(hurt) < len(trips) / 50
