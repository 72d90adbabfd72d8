"""Takes the pictures of the documentation: python -m tests.browser.screenshots.

What they show is made in memory by a clock that stands still, so the same code gives the same pictures.
"""

import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

from fanin import Failure, Tracker
from fanin.domain.directory import Register
from fanin.domain.failures import KeptMessage
from fanin.domain.frames import OpenFrame, Ticket
from fanin.domain.ids import Group
from fanin.domain.marks import ItemRange
from fanin.local.stack import CHECKOUT
from fanin.testing import InMemoryService
from tests.browser import chromium
from tests.browser.consoles import Served, console_of

PICTURES: Final = CHECKOUT / "docs" / "pictures"
SIZES: Final = {"overview": (1280, 800), "batch": (1024, 860), "why": (1280, 560), "attention": (1280, 800)}
"""Width and height of each picture in pixels, by its name."""
BILLION: Final = 1_000_000_000
MARK: Final = 64**3
"""Items of the smallest part of a billion that its picture shows."""
STEPS: Final = 40
REASONS: Final = (
    "order {}: the payment service answered 503",
    "order {}: there is no such article",
    "order {}: the address has no postcode",
)


class Scene:
    """A busy service: a billion orders on their way, some trouble, a scatter, a frame, and buffers.

    Args:
        service: gets all of it; with a clock of its own.
    """

    def __init__(self, service: InMemoryService) -> None:
        self.service = service
        self.tracker: Tracker = service.tracker
        self.random = random.Random(11)
        self.queue = service.queue("orders", channel=True)
        self._small()
        self.invoices = self._invoices()
        self.orders, self._group = self._open_orders()
        with self.tracker.batch(user_key="thumbnails", metadata={"team": "media"}) as thumbnails:
            self._thumbnails = list(thumbnails.add(9_000))

    def pages(self) -> dict[str, str]:
        return {"overview": "/", "batch": f"/batches/{self.orders}", "why": f"/batches/{self.invoices}/why"}

    def work(self, look: Callable[[], None]) -> None:
        """Do two thirds of the orders, in some minutes, in parts that are next to each other by and large.

        Args:
            look: called now and then, as somebody would look who watches.
        """
        marks = list(range(BILLION // MARK))
        marks.sort(key=lambda mark: mark + self.random.gauss(0, 150) + self.random.expovariate(1 / 100))
        marks = marks[: 2 * len(marks) // 3]
        failed = sorted(self.random.sample(marks, 14))
        for step in range(STEPS):
            part = marks[step * len(marks) // STEPS : (step + 1) * len(marks) // STEPS]
            bad = [mark for mark in failed if mark in set(part)]
            self.tracker.fail([self._failure(mark) for mark in bad])
            ranges = [
                ItemRange(self._group.prefix, mark * MARK + (mark in bad), (mark + 1) * MARK) for mark in part
            ]
            self.tracker.ack(ranges)
            self.tracker.ack(self._thumbnails[step * 130 : (step + 1) * 130])
            self.service.advance(timedelta(seconds=self.random.randint(12, 18)))
            look()

    def _failure(self, mark: int) -> Failure:
        text = REASONS[self.random.choice([0, 0, 0, 1, 1, 2])].format(mark * MARK)
        return Failure(self._group[mark * MARK], text, KeptMessage("{}"), attempts=3, source=self.queue)

    def _open_orders(self) -> tuple[int, Group]:
        batch = self.tracker.open(
            user_key="orders-2026",
            metadata={"team": "shop", "source": "warehouse"},
            deadline=timedelta(hours=2),
        )
        group = self.tracker.add(batch.batch_id, BILLION)
        self.tracker.close(batch.batch_id)
        return batch.batch_id, group

    def _invoices(self) -> int:
        queue = self.service.queue("invoices")
        with self.tracker.batch(
            user_key="invoices", metadata={"team": "billing"}, stall_after=timedelta(minutes=2)
        ) as batch:
            batch.send(queue, ({"invoice": number} for number in range(400)))
        return batch.id

    def _small(self) -> None:
        tracker = self.tracker
        with tracker.batch(user_key="catalog", metadata={"team": "data"}) as catalog:
            items = list(catalog.add(28_000))
        tracker.ack(items[12:])
        tracker.fail([Failure(item, "the elevation 'high' is not a number") for item in items[:12]])
        self._pass()
        held = tracker.open(user_key="payments", metadata={"team": "shop"}, on_failure="hold")
        items = list(tracker.add(held.batch_id, 2_400))
        tracker.ack(items[20:])
        tracker.fail([Failure(item, "the payment service answered 503") for item in items[:20]])
        tracker.close(held.batch_id)
        self._pass()
        prices = tracker.open(user_key="prices", metadata={"team": "data"})
        tracker.ack(list(tracker.add(prices.batch_id, 600)))
        self._pass()
        for name in ("brisk", "calm", "eager", "late", "silent"):
            channel = self.service.queue(f"quotes-{name}", channel=True)
            tracker.directory.register(Register("suppliers", name, channel, {"region": "north"}, 86_400))
        tracker.scatters.start("suppliers", {"part": "wheel"}, timeout=timedelta(hours=1), user_key="quotes")
        self._pass()
        frame = tracker.frames.open(
            OpenFrame(12, source="warehouse", destination="billing", user_key="nightly", ttl=36_000)
        )
        claims = tracker.frames.claim([Ticket(frame.frame_id, index) for index in range(9)])
        tracker.ack([claim.item for claim in claims[:7]])
        tracker.buffers.define("mails", 40)
        for number in range(33):
            tracker.buffers.put("mails", [f"mail {number}"])

    def _pass(self) -> None:
        self.service.advance(timedelta(seconds=self.random.randint(20, 90)))


class Night:
    """A batch that has stalled, and fifty newer ones that ended with failures.

    Args:
        service: gets all of them.
    """

    def __init__(self, service: InMemoryService) -> None:
        self.service = service
        tracker = service.tracker
        with tracker.batch(user_key="payroll", stall_after=timedelta(minutes=15)) as payroll:
            payroll.add(1_000)
        service.advance(timedelta(hours=1))
        for number in range(50):
            with tracker.batch(user_key=f"import-{number + 1}") as batch:
                items = list(batch.add(200))
            tracker.ack(items[3:])
            tracker.fail([Failure(item, "the price service answered 503") for item in items[:3]])
            service.advance(timedelta(seconds=20))

    def pages(self) -> dict[str, str]:
        return {"attention": "/"}


def shown(browser: Browser, served: Served, scene: Scene | Night) -> Iterator[tuple[str, Page]]:
    """The pages of a scene, each in a window of its size; by its name."""
    for name, path in scene.pages().items():
        width, height = SIZES[name]
        with browser.new_context(
            viewport={"width": width, "height": height}, reduced_motion="reduce"
        ) as context:
            page = context.new_page()
            page.clock.set_fixed_time(scene.service.now)
            page.goto(served.url + path)
            if page.locator("main[data-live]").count():
                page.get_by_text("Live.", exact=True).wait_for()
            yield name, page


def take(folder: Path, browser: Browser) -> None:
    """Write all pictures into a folder."""
    scene = Scene(InMemoryService())
    with console_of(scene.service, write=True, name="production") as served, browser.new_context() as watcher:
        addresses = [served.url + scene.pages()[name] for name in ("overview", "batch")]
        scene.work(lambda: [watcher.request.get(address) for address in addresses] and None)
        _keep(folder, browser, served, scene)
    night = Night(InMemoryService())
    with console_of(night.service, write=True, name="production") as served:
        _keep(folder, browser, served, night)


def _keep(folder: Path, browser: Browser, served: Served, scene: Scene | Night) -> None:
    for name, page in shown(browser, served, scene):
        page.screenshot(path=folder / f"{name}.png")


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright, chromium.fetch().launch(playwright) as browser:
        take(PICTURES, browser)


if __name__ == "__main__":
    main()
