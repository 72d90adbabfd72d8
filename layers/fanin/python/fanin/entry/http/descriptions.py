"""What the OpenAPI document says in words, besides docstrings; no request but those for it imports this."""

from __future__ import annotations

from typing import Final

TAGS: Final = {
    "batches": "Open a batch, add items, close it, and see how far it is.",
    "items": "Acknowledge items, and fail them.",
    "failures": "Failed and held items, and sending them again.",
    "attention": "What a person should look at.",
    "diagnosis": "Why a batch is not finished, and the notes that help to say it.",
    "scatters": "Send a message to many, and gather their replies.",
    "frames": "Guaranteed delivery of a known number of envelopes.",
    "buffers": "Bounded buffers of work.",
    "directory": "Instances that register to get messages.",
    "routing": "Routes from events to topics, and events.",
    "carlyle": "The API of the original Carlyle, for its clients.",
    "document": "This document.",
}
"""The groups of operations, in the order in which they are shown."""

TAG_OF: Final = {
    "batches": "batches",
    "counts": "batches",
    "acks": "items",
    "retries": "diagnosis",
    "scatters": "scatters",
    "replies": "scatters",
    "claim-checks": "scatters",
    "frames": "frames",
    "claims": "frames",
    "buffers": "buffers",
    "directory": "directory",
    "routes": "routing",
    "events": "routing",
    "openapi.json": "document",
}
"""First part of a path below the root → tag."""

TAG_BELOW_BATCH: Final = {
    "failures": "failures",
    "errors": "failures",
    "release": "failures",
    "redrive": "failures",
    "redrives": "failures",
    "missing": "items",
    "diagnosis": "diagnosis",
    "sent": "diagnosis",
}
"""What follows the id of a batch in a path → tag, if it is not that of batches."""

OPERATIONS: Final = {
    "openBatch": (
        "Every field is optional. With an Idempotency-Key a repeat returns the same batch, in its present "
        "state."
    ),
    "listBatches": (
        "Give a state, a user key or a parent, or a state with one of the others. With a user key the newest "
        "batch is first. Of a parent, the nested batches of its items are listed, the last of each item."
    ),
    "countBatches": (
        "Counts up to a megabyte of entries in each shard of an index: 100,000 batches in a state, or more. "
        "It reads no batch."
    ),
    "expireBatches": (
        "Looks at one page of the batches in a state: live ones without activity are orphaned, ended ones "
        "removed."
    ),
    "getBatch": (
        "Bounds of what is done take at most 67 reads. An exact count may read 500 rows, and falls back "
        "to bounds beyond."
    ),
    "removeBatch": (
        "The batch reads as gone from then on; its end is announced all the same. A live batch is "
        "refused: cancel it first."
    ),
    "addItems": (
        "Takes one write, however many items are added. Without an Idempotency-Key a repeat adds more. A "
        "pending item may add to its own batch, also while that drains; its keys are its own."
    ),
    "addKeys": (
        "All or none, in one transaction. One key is one item of the batch, whoever adds it and however "
        "often, so a repeat is safe."
    ),
    "findKey": "Its id, and whether it is done.",
    "closeBatch": (
        "A closed batch completes when its last item is done; an open one never does. One that closes when "
        "it is drained takes what its own items add until all are done. A repeat changes nothing."
    ),
    "changeLimits": (
        "Of a live batch. What is left out stays. A tolerance that is exceeded already cancels the batch."
    ),
    "cancelBatch": "The batch ends as cancelled at once; what is pending stays so.",
    "releaseItems": "Looks at some hundreds of failures. Go on with the cursor, until it is null.",
    "listMissing": (
        "The ranges have the form that an acknowledgement takes. A call reads at most 500 rows; a page "
        "may be short or empty."
    ),
    "listResults": (
        "In the order of the items, also while others are pending. A page looks at up to `limit` items; it "
        "may be short or empty."
    ),
    "listFailures": (
        "In the order in which the items were added, each with its reason and whether its message was kept."
    ),
    "getFailure": "Its message is null if it was not kept.",
    "listErrors": (
        "A call groups some hundreds of failures: add up the pages. Reasons that differ in numbers, ids "
        "and quoted texts are one error."
    ),
    "listTargets": "Tokens and URLs are masked.",
    "redeliverTargets": (
        "Those of an ended batch that were not told yet, at once. The answer has the states before."
    ),
    "verifyBatch": (
        "Walks down from the root in pages, and repairs what disagrees unless repair is false. Add up "
        "what is pending."
    ),
    "markItems": (
        "Each mark stands alone: one that is malformed, or whose batch is gone, is refused by its place, and "
        "affects no other. The first mark of an item decides. Only what is left is to be repeated. A failure "
        "may bring the message that it was about, which is then kept with the batch."
    ),
    "getPicture": (
        "A node has up to 64 parts: words of the level below, or items on level 0. Reads at most 66 rows."
    ),
    "redriveBatch": (
        "Each failure is sent by one redrive only, however often this is called. With dry_run it only counts."
    ),
    "listRedrives": "Each with its selection, its state, and the batch that has the items.",
    "listAttention": (
        "Live batches come before ended ones, and the most urgent first: stalled, held, failing, targets "
        "that could not be told, all done but not closed, ended with items missing, ended with failures. A "
        "failure that was redriven is not listed. It reads what is wrong, however many batches there are."
    ),
    "diagnoseBatch": (
        "Findings, most likely first, and what is known of the first missing ranges, from at most 100 reads."
    ),
    "noteSent": "Producers call it for each block of messages that a queue has accepted.",
    "noteRetries": "Consumers call it when they receive a message again.",
    "defineBuffer": "A repeat with another limit changes the limit.",
    "getBuffer": "The number of pending payloads, and of those that are taken.",
    "deleteBuffer": "The work that is in it is lost. A repeat changes nothing.",
    "listBuffers": "In the order of their names.",
    "putWork": "All payloads or none. Not idempotent without an Idempotency-Key.",
    "takeWork": "Work that is not reported as done comes again after its visibility timeout.",
    "doneWork": "Work that failed is given up, and does not come again.",
    "register": "A repeat is a heartbeat, or changes the channel and the attributes.",
    "getRegistration": "Answers 404 when its lease is over.",
    "deregister": "A repeat finds nothing, and says so.",
    "listTopic": (
        "A page has those registrations whose lease is not over, and that have the attributes asked for."
    ),
    "putRoute": "Events that match the pattern go to the registrations of the topic.",
    "getRoute": "Its pattern, topic and policy.",
    "deleteRoute": "A repeat finds nothing, and says so.",
    "listRoutes": "In the order of their names.",
    "putEvent": "The event gets a correlation id if it has none. Not idempotent: a repeat is another event.",
    "openFrame": (
        "A frame is a closed batch of envelopes. With an Idempotency-Key a repeat returns the same frame."
    ),
    "getFrame": "The state of the frame, and one page of the ranges of envelopes that were not handled.",
    "claimEnvelopes": (
        "Each envelope is leased to one receiver at a time, and acknowledged by the item in its claim."
    ),
    "startScatter": (
        "To a list of recipients, or to everyone who is registered under a topic. With an Idempotency-Key "
        "it is started once."
    ),
    "getScatter": "The counts are exact.",
    "listReplies": "Recipients without a reply are skipped. A page may be short or empty.",
    "listMissingRecipients": "By number and name. A page may be short or empty.",
    "listFailedRecipients": "By number and name, each with its reason.",
    "reply": "A second reply of a recipient is a duplicate, and is not stored.",
    "claimPayload": "For a payload over 200 KB: upload it to the URL, and reply with the key.",
    "getDocument": "It is made from the table of routes by which requests are served.",
    "getV1Document": "It is made from the table of routes by which requests are served.",
    "carlyleCreateExact": "Opens a batch.",
    "carlyleGetExact": "Whether it is complete, and whether it is closed.",
    "carlyleCloseExact": "It completes when its last item is done.",
    "carlyleAddExact": "The ids of the items are the group's id with an index.",
    "carlyleAckExact": "Names the batches that are complete.",
    "carlyleDeleteOpen": "Open batches without activity since then are orphaned.",
    "carlyleDeleteClosed": (
        "Batches that are not open are removed, or orphaned, if they had no activity since then."
    ),
    "carlyleCreateEstimated": (
        "Opens a batch that counts its items, and does not know which of them are done."
    ),
    "carlyleGetEstimated": "Whether it is complete, and whether it is closed.",
    "carlyleDeleteEstimated": "The batch is cancelled, and reads as closed until its lifetime ends.",
    "carlyleCloseEstimated": "It completes when as many items were acknowledged as were added.",
    "carlyleIncrement": "Adds to the number of items. Not idempotent.",
    "carlyleDecrement": "Counts items as done. Not idempotent.",
}

PARAMETERS: Final = {
    "batch_id": "The batch.",
    "frame_id": "The frame.",
    "ordinal": "Number of the item in its batch, from 0.",
    "name": "The name of the registration, the route or the buffer.",
    "topic": "The topic.",
    "limit": "Most results of a page. A page may have fewer: only a null cursor marks the end.",
    "state": "Only batches in this state.",
    "user_key": "Only batches that were opened with this user key.",
    "parent": "Only batches that are nested in this one.",
    "idle_since": "Only batches without activity since then.",
    "exact": "Count the items that are done, if 500 reads are enough.",
    "repair": "Correct what disagrees.",
    "key_of_item": "The key that the item was added with.",
    "when": "Now, or once the batch is drained: until then it takes what its own items add.",
    "by": "How many items to add.",
}

FIELDS: Final = {
    "Batch.deadline": "When `on_deadline` happens.",
    "Batch.expires_at": "When the batch reads as gone: its lifetime is over, and a day of retention.",
    "Batch.stall_after": "Seconds without activity until a live batch counts as stalled; 0 for never.",
    "Batch.touched_at": "Last activity, rounded down.",
    "Batch.held": "Items that failed and are held; they are pending.",
    "Batch.totals": "Its totals, with their sums as far as they are known.",
    "Batch.targets": "How many targets are told of its end.",
    "OpenBatch.deadline": "When `on_deadline` happens; within the lifetime.",
    "MissingKnown.from": "Index of the first item in the group.",
    "MissingRange.from": "Index of the first item in the group.",
    "AddItems.count": "How many items to add.",
    "KeyedItems.items": "The items of the keys, in the order of the request.",
    "AddKeys.keys": "The keys; of several equal ones, the first counts.",
    "CountItems.count": "How many items are done.",
    "MarkItems.marks": (
        "Ids of items that are done, and objects for everything else: with item and totals, with failed, "
        "with group, or with batch_id and count."
    ),
    "UnsettledMark.place": "Number of the mark in the request, from 0.",
    "UnsettledMark.code": "As in the type of a problem.",
    "UnsettledMark.detail": "Why it is not settled, and what to do.",
    "DefineBuffer.limit": "Most payloads that are pending at a time.",
    "Deletion.deleted": "Whether there was something to delete.",
    "CarlyleGroup.id": "The group's id: its items are `<batch id>:<id>:<index>`.",
    "Registration.reason": "Why the registration ended; left out while it is active.",
    "Registration.until": "When its lease ends.",
    "Scattered.missing": "Recipients that neither replied nor failed.",
    "ReplyReceipt.duplicate": "Whether the recipient had replied before.",
    "FailedMessage.message": "The message; null if it was not kept.",
    "CarlyleItems.items": "How many items to add.",
    "CarlyleCompletion.batchId": "The batch, as a UUID.",
    "CarlyleDecrement.batchId": "The batch, as a UUID.",
    "CarlyleEstimatedCreated.batchId": "The batch, as a UUID.",
    "batches": "One entry for each batch.",
    "cursor": "Gets the next page; null at the end.",
    "payloads": "Texts to put in.",
    "most": "Most payloads to take.",
    "work": "What was taken.",
    "receipts": "Of the work that is done.",
    "userKey": "The caller's own name for the batch.",
    "batchId": "The batch.",
    "batchItemIds": "Ids of items that are done.",
    "by": "How many items.",
    "acks": "What to count, for each batch.",
    "isComplete": "Whether every item is done.",
    "isClosed": "Whether the batch takes no more items.",
    "upto": "How many items the group has.",
    "batchItemGroupIds": "The groups of the items that were added.",
    "batchCompletions": "The batches that are complete.",
    "results": "One entry for each batch.",
    "batchesRemoved": "How many batches were orphaned or removed.",
    "itemsRemoved": "How many items they had.",
    "from": "The first of the range, from 0.",
    "to": "One past the last of the range; null for the end of the group, where that is allowed.",
    "retries": "The failed attempts.",
    "registrations": "One entry for each registration.",
    "name": "Its name.",
    "pattern": "A pattern of EventBridge; events that match it are routed.",
    "topic": "The topic.",
    "policy": "Who gets an event: all registrations, the first, or the one that the event names.",
    "attributes": "Only registrations that have all of these.",
    "since": "Since when.",
    "routes": "One entry for each route.",
    "event_id": "The event's id on the bus.",
    "correlation_id": "In the detail of the event.",
    "frame_id": "The frame.",
    "index": "Number of the envelope in its frame, from 0.",
    "claims": "One entry for each envelope.",
    "failures": "One entry for each failed item.",
    "errors": "One entry for each error, the most frequent first.",
    "title": "The name of the status.",
    "status": "The status of HTTP.",
    "request_id": "Finds the request in the logs.",
    "openapi": "The version of OpenAPI.",
    "info": "What the document is about.",
    "paths": "The operations, by their paths.",
    "redrives": "One entry for each redrive.",
    "ready": "Whether the scatter has ended with enough replies.",
    "recipients": "Its recipients, or how many they are.",
    "totals": "What the item adds to the totals of its batch, by their names.",
    "replies": "One entry for each reply.",
}
"""Descriptions of fields that no docstring has: of one component, or of all that have a field of the name."""
