"""Which items are handled now, and which of them a child batch has taken over."""

from concurrent.futures import ThreadPoolExecutor

from fanin.client.items_in_hand import ItemsInHand


def test_an_item_expects_a_child_while_its_message_is_handled_and_until_it_has_one():
    items = ItemsInHand()
    assert not items.expects_child("1:g:0")
    with items.handling("1:g:0") as handling:
        assert items.expects_child("1:g:0")
        assert not items.expects_child("1:g:1")
        items.leave_to_child("1:g:0")
        assert handling.left_to_child
        assert not items.expects_child("1:g:0")
    assert not items.expects_child("1:g:0")


def test_the_next_handling_begins_anew():
    items = ItemsInHand()
    with items.handling("1:g:0"):
        items.leave_to_child("1:g:0")
    with items.handling("1:g:0") as again:
        assert items.expects_child("1:g:0")
    assert not again.left_to_child


def test_a_thread_of_the_handler_counts_too():
    items = ItemsInHand()
    with items.handling("1:g:0") as handling, ThreadPoolExecutor() as threads:
        assert threads.submit(items.expects_child, "1:g:0").result()
        threads.submit(items.leave_to_child, "1:g:0").result()
    assert handling.left_to_child


def test_one_item_may_be_handled_twice_at_a_time():
    items = ItemsInHand()
    with items.handling("1:g:0") as outer:
        with items.handling("1:g:0") as inner:
            items.leave_to_child("1:g:0")
        assert (outer.left_to_child, inner.left_to_child) == (True, True)


def test_a_message_without_an_item_has_nothing_to_leave():
    items = ItemsInHand()
    with items.handling(None) as handling:
        items.leave_to_child("1:g:0")
        assert not items.expects_child(None)
    assert not handling.left_to_child
