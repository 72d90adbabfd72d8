"""What every store of parts promises: notes of items that failed, were sent, or are tried again."""

from fanin.app.ports.batches import Activity
from fanin.app.ports.parts import IN_ROW, FailureRow, Redriven, ResultRow, RetryRow, SentRow
from fanin.domain.access import IdempotencyKey
from fanin.domain.ids import MAX_ITEMS

from .given import LATER, NOW, put


class TestFailures:
    def test_notes_are_listed_by_ordinal(self, stores):
        ordinals = [MAX_ITEMS - 1, 10, 9, 0, 100, *range(1000, 1040)]
        notes = {n: FailureRow(n, f"8:g:{n}", f"reason {n} ☂") for n in ordinals}
        stores.parts.put_failures(8, notes.values(), expires_at=LATER)
        stores.parts.put_failures(9, [FailureRow(1, "9:g:1", "")], expires_at=LATER)

        for limit in (1, 7, 45, 100):
            listed, cursor = stores.parts.failures(8, limit=limit)
            while cursor is not None:
                page, cursor = stores.parts.failures(8, limit=limit, cursor=cursor)
                assert len(page) <= limit
                listed += page
            assert listed == [notes[n] for n in sorted(notes)]

    def test_the_first_note_of_an_item_stays(self, stores):
        notes = [FailureRow(n % 30, f"8:g:{n % 30}", f"try {n}", failed_at=NOW) for n in range(60)]
        stores.parts.put_failures(8, notes, expires_at=LATER)
        stores.parts.put_failures(8, [FailureRow(0, "8:g:0", "again", failed_at=NOW + 1)], expires_at=LATER)

        assert stores.parts.failures(8)[0] == notes[:30]

    def test_the_first_note_learns_where_the_message_is(self, stores):
        first = FailureRow(3, "8:g:3", "first", attempts=1, failed_at=NOW)
        for kept in (IN_ROW, "key"):
            stores.parts.put_failures(8, [first], expires_at=LATER)
            later = FailureRow(3, "8:g:3", "later", 5, NOW + 1, "arn:q", kept)
            stores.parts.put_failures(8, [later], expires_at=LATER)

        assert stores.parts.notes(8, [3]) == {3: first._replace(attempts=5, source="arn:q", kept=IN_ROW)}

    def test_a_note_of_what_was_given_up_gives_way(self, stores):
        given_up = FailureRow(3, "8:g:3", "expired", failed_at=NOW, given_up=True)
        failed = FailureRow(3, "8:g:3", "no price", 2, NOW + 1, "arn:q", IN_ROW)
        for row, stays in ((given_up, given_up), (failed, failed), (given_up, failed)):
            stores.parts.put_failures(8, [row], expires_at=LATER)
            assert stores.parts.notes(8, [3]) == {3: stays}

    def test_notes_are_listed_between_ordinals(self, stores):
        notes = [FailureRow(n, f"8:g:{n}", "why", failed_at=NOW) for n in (0, 9, 10, 63, 64, 100)]
        stores.parts.put_failures(8, notes, expires_at=LATER)
        stores.parts.put_failures(9, [FailureRow(11, "9:g:11", "")], expires_at=LATER)

        assert stores.parts.notes_between(8, 9, 64, limit=10) == notes[1:4]
        assert stores.parts.notes_between(8, 9, 64, limit=2) == notes[1:3]
        assert stores.parts.notes_between(8, 11, 63, limit=2) == []

    def test_reasons_are_those_of_the_notes(self, stores):
        notes = [FailureRow(n, f"8:g:{n}", f"why {n} ☂") for n in (3, 9, MAX_ITEMS - 1)]
        stores.parts.put_failures(8, notes, expires_at=LATER)
        stores.parts.put_failures(9, [FailureRow(4, "9:g:4", "of another batch")], expires_at=LATER)

        asked = [MAX_ITEMS - 1, 3, 4, 3]
        assert stores.parts.reasons(8, asked) == {3: "why 3 ☂", MAX_ITEMS - 1: f"why {MAX_ITEMS - 1} ☂"}
        assert stores.parts.reasons(8, []) == {}

    def test_idempotency_keys_are_no_notes(self, stores):
        batch = put(stores)
        stores.batches.allocate_once(batch, 4, IdempotencyKey.of("zzz"), activity=Activity(NOW, NOW))

        assert stores.parts.failures(8) == ([], None)

    def test_no_notes_is_no_write(self, stores):
        stores.parts.put_failures(8, [], expires_at=LATER)

        assert stores.parts.failures(8) == ([], None)

    def test_a_note_keeps_what_is_known_of_a_failure(self, stores):
        known = FailureRow(3, "8:g:3", "why", attempts=5, failed_at=NOW, source="arn:q", kept=IN_ROW)
        unknown = FailureRow(4, "8:g:4", "")
        stores.parts.put_failures(8, [known, unknown], expires_at=LATER)

        assert stores.parts.failures(8)[0] == [known, unknown]

    def test_a_note_keeps_what_its_item_brings_until_a_later_failure(self, stores):
        brings = FailureRow(3, "8:g:3", "why", failed_at=NOW, totals=(("cents", -5), ("rows", 2**53)))
        later = FailureRow(3, "8:g:3", "why", failed_at=NOW + 1)
        stores.parts.put_failures(8, [brings._replace(ordinal=4)], expires_at=LATER)
        stores.parts.update_failures(8, [brings], expires_at=LATER)
        assert stores.parts.notes(8, [3, 4]) == {3: brings, 4: brings._replace(ordinal=4)}

        stores.parts.update_failures(8, [later], expires_at=LATER)
        assert stores.parts.notes(8, [3]) == {3: later}

    def test_a_note_without_a_message_leaves_the_one_that_was_kept(self, stores):
        kept = FailureRow(3, "8:g:3", "why", attempts=5, failed_at=NOW, source="arn:q", kept=IN_ROW)
        stores.parts.put_failures(8, [kept], expires_at=LATER)
        again = FailureRow(3, "8:g:3", "by hand", failed_at=NOW + 1)
        other = FailureRow(4, "8:g:4", "", attempts=2)

        for _ in range(2):  # also when it is repeated
            stores.parts.update_failures(8, [again, other], expires_at=LATER)

        again = kept._replace(reason="by hand", failed_at=NOW + 1)
        assert stores.parts.notes(8, [3, 4, 5]) == {3: again, 4: other}
        assert stores.parts.failures(8)[0] == [again, other]

    def test_an_update_leaves_a_later_note_alone_and_may_say_where_the_message_is(self, stores):
        first = FailureRow(3, "8:g:3", "first", failed_at=NOW, source="arn:q", kept="key")
        later = FailureRow(3, "8:g:3", "later", attempts=2, failed_at=NOW + 1, kept=IN_ROW)
        stores.parts.update_failures(8, [first], expires_at=LATER)
        stores.parts.update_failures(8, [later], expires_at=LATER)

        stores.parts.update_failures(8, [first], expires_at=LATER)

        assert stores.parts.notes(8, [3]) == {3: later}

    def test_a_later_note_without_a_message_learns_where_that_of_an_earlier_one_is(self, stores):
        later = FailureRow(3, "8:g:3", "later", failed_at=NOW + 1)
        stores.parts.update_failures(8, [later], expires_at=LATER)

        for kept in (IN_ROW, "key"):
            earlier = FailureRow(3, "8:g:3", "earlier", failed_at=NOW, kept=kept)
            stores.parts.update_failures(8, [earlier], expires_at=LATER)

        assert stores.parts.notes(8, [3]) == {3: later._replace(kept=IN_ROW)}

    def test_no_notes_to_update_is_no_write(self, stores):
        stores.parts.update_failures(8, [], expires_at=LATER)

        assert stores.parts.notes(8, []) == {}


class TestMessages:
    def test_messages_are_read_by_ordinal_of_their_batch(self, stores):
        messages = {n: f"body {n} ☂".encode() for n in (0, 1, 16, 17, MAX_ITEMS - 1)}
        stores.parts.put_messages(8, messages, expires_at=LATER)
        stores.parts.put_messages(9, {1: b"of another batch"}, expires_at=LATER)
        stores.parts.put_messages(8, {16: b"again", 17: b"first"}, again=True, expires_at=LATER)
        stores.parts.put_messages(8, {17: b"too late"}, expires_at=LATER)

        asked = [MAX_ITEMS - 1, 16, 5, 1, 16, 17]
        assert stores.parts.messages(8, asked) == {
            1: messages[1],
            16: b"again",
            17: b"first",
            MAX_ITEMS - 1: messages[MAX_ITEMS - 1],
        }
        assert stores.parts.failures(8) == ([], None)

    def test_deleted_messages_are_gone_and_others_stay(self, stores):
        stores.parts.put_messages(8, {1: b"one", 2: b"two"}, expires_at=LATER)

        stores.parts.delete_messages(8, [1, 7, 1])
        stores.parts.delete_messages(8, [1])

        assert stores.parts.messages(8, [1, 2]) == {2: b"two"}


class TestResults:
    def test_the_first_result_of_an_item_stays_until_it_is_deleted(self, stores):
        first = [ResultRow(n, f"8:g:{n}", b'{"n":1}') for n in (0, 16, MAX_ITEMS - 1)]
        kept = ResultRow(1, "8:g:1", kept="days-32/8/1/result")
        stores.parts.put_results(8, [*first, kept], expires_at=LATER)
        stores.parts.put_results(
            8, [ResultRow(0, "8:g:0", b"2"), ResultRow(1, "8:g:1", b"2")], expires_at=LATER
        )
        stores.parts.put_results(9, [ResultRow(2, "9:g:2", b"2")], expires_at=LATER)

        assert stores.parts.results(8, [1, MAX_ITEMS - 1, 0, 2, 16, 0]) == {
            row.ordinal: row for row in (first[0], kept, *first[1:])
        }
        stores.parts.delete_results(8, [0, 0, 7])
        assert stores.parts.results(8, [0, 1]) == {1: kept}


class TestRedriven:
    def test_a_failure_is_taken_by_one_redrive_and_a_repeat_finds_that_out(self, stores):
        mine, other = Redriven("a", NOW, "9:g:1"), Redriven("b", NOW)

        first = stores.parts.mark_redriven(8, {1: mine, 20: mine}, {}, expires_at=LATER)
        late = stores.parts.mark_redriven(8, {1: other, 2: other}, {}, expires_at=LATER)
        repeat = stores.parts.mark_redriven(8, {1: mine, 2: mine, 20: mine}, {}, expires_at=LATER)

        assert (first, late, repeat) == ({1, 20}, {2}, {1, 20})
        assert stores.parts.redriven(8, [1, 2, 3, 20, 1]) == {1: mine, 2: other, 20: mine}
        assert stores.parts.redriven(9, [1]) == {}

    def test_a_mark_replaces_only_the_one_that_was_read(self, stores):
        marks = [Redriven("a", NOW), Redriven("b", NOW), Redriven("a", NOW + 1), Redriven("a", NOW, "9:g:1")]
        for before in marks:
            for n, wrong in enumerate(marks):
                stores.parts.mark_redriven(7, {n: before}, stores.parts.redriven(7, [n]), expires_at=LATER)
                new = Redriven("new", NOW, "9:g:7")
                taken = stores.parts.mark_redriven(7, {n: new}, {n: wrong}, expires_at=LATER)
                assert taken == ({n} if wrong == before else set())
        assert stores.parts.mark_redriven(7, {30: marks[0]}, {30: marks[1]}, expires_at=LATER) == set()


class TestSent:
    def test_notes_are_listed_from_an_ordinal_down(self, stores):
        rows = [SentRow("q", start, start + 5, NOW, NOW) for start in (0, 9, 10, 100, MAX_ITEMS - 5)]
        for row in rows:
            stores.parts.put_sent(8, row, expires_at=LATER)
        stores.parts.put_sent(9, SentRow("q", 3, 4, NOW, NOW), expires_at=LATER)

        assert stores.parts.sent(8, upto=MAX_ITEMS, limit=9) == (rows[::-1], False)
        assert stores.parts.sent(8, upto=100, limit=2) == (rows[3:1:-1], True)
        assert stores.parts.sent(8, upto=9, limit=9) == (rows[1::-1], False)
        assert stores.parts.sent(7, upto=9, limit=9) == ([], False)

    def test_a_note_grows_and_a_shorter_one_that_comes_late_is_refused(self, stores):
        for stop, at in ((5, NOW), (20, NOW + 7), (20, NOW + 9), (10, NOW + 11)):
            stores.parts.put_sent(8, SentRow("q", 0, stop, at, at), expires_at=LATER)

        assert stores.parts.sent(8, upto=0, limit=9) == ([SentRow("q", 0, 20, NOW, NOW + 9)], False)

    def test_each_queue_has_a_note_of_its_own_however_long_its_url(self, stores):
        for queue in ("q" * 1_024, "é" * 1_024, "https://sqs/1/work"):
            stores.parts.put_sent(8, SentRow(queue, 3, 4, NOW, NOW), expires_at=LATER)

        rows, _ = stores.parts.sent(8, upto=3, limit=9)
        assert {row.queue for row in rows} == {"q" * 1_024, "é" * 1_024, "https://sqs/1/work"}


class TestRetries:
    def test_notes_are_read_by_ordinal_and_listed_from_one_on(self, stores):
        rows = {n: RetryRow(n, 2, f"why {n} ☂", "work", NOW) for n in (0, 9, 10, 100, MAX_ITEMS - 1)}
        stores.parts.put_retries(8, rows.values(), expires_at=LATER)
        stores.parts.put_retries(9, [RetryRow(3, 2, "of another batch", "", NOW)], expires_at=LATER)

        assert stores.parts.retries(8, [9, 100, 3, 9]) == {9: rows[9], 100: rows[100]}
        assert stores.parts.retries(8, []) == {}
        assert stores.parts.retries_from(8, 10, limit=2) == [rows[10], rows[100]]
        assert stores.parts.retries_from(8, MAX_ITEMS, limit=2) == []

    def test_the_last_note_of_an_item_stays(self, stores):
        for attempt in (2, 3):
            stores.parts.put_retries(8, [RetryRow(4, attempt, "", "", NOW)] * 2, expires_at=LATER)

        assert stores.parts.retries(8, [4])[4].attempt == 3

    def test_notes_of_one_kind_are_not_those_of_another(self, stores):
        stores.parts.put_failures(8, [FailureRow(4, "8:g:4", "")], expires_at=LATER)
        stores.parts.put_sent(8, SentRow("q", 4, 5, NOW, NOW), expires_at=LATER)
        stores.parts.put_retries(8, [RetryRow(4, 2, "", "", NOW)], expires_at=LATER)

        assert len(stores.parts.failures(8)[0]) == 1
        assert len(stores.parts.sent(8, upto=9, limit=9)[0]) == 1
        assert len(stores.parts.retries_from(8, 0, limit=9)) == 1
