"""Frames: the batch that a frame is, and the mark of a repeat that was requested."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fanin.domain.batch import Batch, Kind, OpenBatch, State
from fanin.domain.frames import Claim, ClaimEnvelopes, Frame, Hold, OpenFrame, Ticket, is_marked, mark_of
from fanin.domain.limits import MAX_LIFETIME, MIN_IDLE_TTL

NOW = 1_790_000_000_000
BATCH = Batch(
    batch_id=7,
    salt=b"s",
    created_at=NOW,
    touched_at=NOW,
    expires_at=NOW // 1000 + 86_400,
    open_idle_ttl=100,
    closed_idle_ttl=200,
    state=State.CLOSED,
    kind=Kind.FRAME,
    user_key="mine",
    items=12,
    metadata={"source": "a"},
)
TIMES = st.integers(0, 2**41)
FRAMES = st.integers(MIN_IDLE_TTL, MAX_LIFETIME).map(lambda ttl: replace(BATCH, closed_idle_ttl=ttl))


class TestOpening:
    def test_a_frame_is_a_batch_of_as_many_items_as_envelopes(self):
        frame = OpenFrame(
            size=3, source="a", destination="b", reply_to="https://sqs/a", ttl=90, user_key="mine"
        )

        assert frame.batch() == OpenBatch(
            kind=Kind.FRAME,
            size=3,
            idle_ttl=90,
            user_key="mine",
            metadata={"source": "a", "destination": "b", "reply_to": "https://sqs/a"},
        )

    def test_names_that_were_not_given_are_left_out(self):
        assert OpenFrame(size=1).batch().metadata == {}
        assert OpenFrame(size=1, destination="b").batch().metadata == {"destination": "b"}

    def test_a_frame_goes_stale_after_an_hour_and_a_lease_ends_after_30_seconds_unless_told(self):
        assert OpenFrame(size=1).batch() == OpenBatch(kind=Kind.FRAME, size=1, idle_ttl=3_600, user_key="")
        assert ClaimEnvelopes([Ticket(7, 0)]).lease == 30
        assert Claim(Ticket(7, 0), Hold.CLAIMED, "7:g:0").until == 0
        assert Frame(7, State.CLOSED, size=1, ttl=60, about={}).user_key == ""


class TestReading:
    def test_answers_have_these_words(self):
        assert [*Hold] == ["claimed", "leased", "done", "ended"]

    def test_a_frame_shows_its_batch(self):
        assert Frame.of(BATCH) == Frame(
            frame_id=7,
            state=State.CLOSED,
            size=12,
            ttl=200,
            about={"source": "a"},
            user_key="mine",
            missing=(),
            cursor=None,
        )


class TestMark:
    @given(now=TIMES, frame=FRAMES)
    def test_a_frame_that_was_marked_shows_it(self, now, frame):
        assert is_marked(replace(frame, touched_at=mark_of(frame, now)))

    @given(now=TIMES, frame=FRAMES)
    def test_activity_never_looks_like_a_mark(self, now, frame):
        assert not is_marked(replace(frame, touched_at=frame.rounded(now)))

    @given(now=TIMES, frame=FRAMES, later=st.integers(0, 10**9))
    def test_activity_after_a_mark_is_later_than_the_mark(self, now, frame, later):
        assert mark_of(frame, now) < frame.rounded(now + later)

    @given(now=TIMES, frame=FRAMES)
    def test_a_mark_takes_at_most_a_tenth_of_the_idle_time_away(self, now, frame):
        assert now - frame.idle_ttl * 100 <= mark_of(frame, now) < now

    def test_a_mark_is_one_millisecond_before_a_step(self):
        assert mark_of(BATCH, NOW) == BATCH.rounded(NOW) - 1

    def test_the_idle_time_of_the_present_state_counts(self):
        # Given a time that is a step of an open batch's idle time, and none of a closed one's
        marked = replace(BATCH, touched_at=10_000, open_idle_ttl=100, closed_idle_ttl=200)

        assert is_marked(marked)
        assert not is_marked(replace(marked, state=State.OPEN))
