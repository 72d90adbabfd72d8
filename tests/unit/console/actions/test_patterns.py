"""Actions on buffers, routes and registrations, as a person at the console sees them."""

from __future__ import annotations

import pytest

from fanin import PutRoute, Register
from fanin.domain.routing import Policy
from fanin.errors import BufferNotFound
from tests.unit.console.pressing import buttons_of, text_of


class TestLimit:
    PATH = "/buffers/stage/actions/limit"

    def test_it_says_that_it_drains_first(self, service, person) -> None:
        # Given
        buffers = service.services.buffers
        buffers.define("stage", 5)
        buffers.put("stage", ["a", "b"])
        # When
        asked = person.look(self.PATH)
        # Then
        assert "puts are rejected until the 2 payloads in it are done." in text_of(asked)
        assert buttons_of(asked) == ["Change the limit of stage"]
        # When
        done = person.send(self.PATH, limit="8")
        # Then
        assert "The limit was 5, and is 8. 2 payloads in it are to be done first." in text_of(done)
        assert buffers.status("stage").buffer.limit == 8
        # And once more changes nothing
        again = person.send(self.PATH, limit="8")
        assert "Nothing was done: the limit is 8 already." in text_of(again)

    def test_an_empty_one_has_it_at_once(self, service, person) -> None:
        service.services.buffers.define("stage", 5)
        assert "The buffer is empty: the next put has the new limit." in text_of(person.look(self.PATH))
        person.send(self.PATH, limit="8")
        service.services.buffers.put("stage", ["x"] * 8)
        assert service.services.buffers.status("stage").pending == 8

    @pytest.mark.parametrize("limit", ["", "0", "-3", "1e3", "\u0663", "1000001", "9" * 40])
    def test_what_is_not_a_limit_is_refused(self, service, person, limit) -> None:
        service.services.buffers.define("stage", 5)
        person.look(self.PATH)
        refused = person.send(self.PATH, limit=limit)
        assert refused.status_code == 400
        assert '<p class="notice error" role="alert">' in refused.text
        assert buttons_of(refused) == ["Change the limit of stage"]
        assert service.services.buffers.status("stage").buffer.limit == 5
        assert person.console.log.entries()[0].record.outcome.code == "invalid-request"

    def test_a_buffer_that_is_gone_is_not_made_anew(self, service, person) -> None:
        # Given a question about a buffer that is deleted before the press
        service.services.buffers.define("stage", 5)
        person.look(self.PATH)
        service.services.buffers.delete("stage")
        # When
        answer = person.send(self.PATH, limit="8")
        # Then
        assert answer.status_code == 404
        assert "Nothing was done: " in text_of(answer)
        with pytest.raises(BufferNotFound):
            service.services.buffers.status("stage")


class TestRoute:
    PATH = "/routes/orders/actions/delete"

    @pytest.mark.parametrize(
        ("policy", "get"),
        [
            (Policy.ALL, "Now 2 registrations of it may get each"),
            (Policy.FIRST, "Now one of 2 registrations"),
        ],
    )
    def test_it_says_who_gets_its_events(self, service, person, policy, get) -> None:
        # Given a hostile pattern
        pattern = {"source": ["</script>&"]}
        service.services.routing.put(PutRoute("orders", pattern, "shop", policy))
        for name in ("a", "b"):
            service.services.directory.register(Register("shop", name, service.queue(channel=True)))
        # When
        asked = person.look(self.PATH)
        # Then
        assert get in text_of(asked)
        assert '{"source": ["</script>&"]}' in text_of(asked)
        assert "</script>&" not in asked.text
        assert buttons_of(asked) == ["Delete the route orders"]
        # When
        done = person.send(self.PATH)
        # Then
        assert "The route orders is deleted." in text_of(done)
        assert list(service.services.routing.page().routes) == []
        # And once more
        again = person.send(self.PATH)
        assert again.status_code == 404
        assert "Nothing was done: " in text_of(again)


class TestRegistration:
    PATH = "/directory/shop/a/actions/deregister"

    def test_it_says_what_is_not_sent_any_more(self, service, person) -> None:
        # Given
        queue = service.queue(channel=True)
        service.services.directory.register(Register("shop", "a", queue, {"zone": "<eu>"}))
        # When
        asked = person.look(self.PATH)
        # Then
        assert "What is sent to the topic shop from now on no longer reaches a." in text_of(asked)
        assert "zone=<eu>" in text_of(asked)
        assert buttons_of(asked) == ["Deregister a"]
        # When
        done = person.send(self.PATH)
        # Then
        assert "a is deregistered from shop." in text_of(done)
        assert list(service.services.directory.page("shop").registrations) == []
        # And once more
        again = person.send(self.PATH)
        assert again.status_code == 404
        assert "Nothing was done: " in text_of(again)
