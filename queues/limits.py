"""The bounds of the API and the control plane, each with its reason."""

MIB = 1024 * 1024

#: One request (API.md); four bodies of the largest size.
REQUEST_BYTES_MAX = 16 * MIB
#: One batch (API.md), and one hold of the append lock.
BATCH_MESSAGES_MAX = 1000
#: What one `receive` answers with, so that an answer is never larger than a request may be.
RECEIVE_BYTES_MAX = 16 * MIB
RECEIVE_MESSAGES_MAX = 256
RECEIVE_MESSAGES_DEFAULT = 32
#: A poll holds a thread; above this, proxies cut connections.
RECEIVE_WAIT_S_MAX = 20
LEASE_S_MIN, LEASE_S_MAX, LEASE_S_DEFAULT = 10, 43_200, 60
#: Receipts in one request: as many as two largest `receive` answers hand out.
RECEIPTS_MAX = 1000
#: A list's page; larger ones are cut, not refused (AIP-158).
PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX = 50, 1000
#: A queue is a directory of files for each topic; RocketMQ's default is 8.
TOPIC_QUEUES_DEFAULT, TOPIC_QUEUES_MAX = 8, 1024
#: A group reads each of its topics on every receive.
SUBSCRIPTIONS_MAX = 64
#: Tags in one subscription's expression.
TAGS_MAX = 64
RETRIES_DEFAULT, RETRIES_MAX = 16, 1000
RETRY_QUEUES_MAX = 64
#: Attempts to come that a message shows: RocketMQ's sixteen and a margin.
PLANNED_ATTEMPTS_MAX = 20
CUSTOM_DELAYS_MAX = 100
#: Dead letters that one request names, and that one request drives before it answers.
REDRIVE_IDS_MAX, REDRIVEN_AT_ONCE_MAX = 1000, 100
#: Names of topics and groups: RocketMQ's 127, and 127 less its prefixes and a margin.
TOPIC_NAME_MAX, GROUP_NAME_MAX = 127, 110
#: A tag or key is one property value; long ones belong into the body.
TAG_CHARACTERS_MAX, KEY_CHARACTERS_MAX = 255, 255
SHARDING_KEY_CHARACTERS_MAX = 255
#: RFC drafts and others agree on 255.
IDEMPOTENCY_KEY_CHARACTERS_MAX = 255
#: All keys of a message together, so that they and the user's properties fit one record (32 KiB).
KEYS_BYTES_MAX = 8192
CONSUMER_ID_CHARACTERS_MAX = 255
#: An audit entry, a cancel's reason.
REASON_CHARACTERS_MAX = 1000
#: A quota above this is none: no machine gets so far.
QUOTA_MAX = 1_000_000_000
#: A bucket that holds an hour's worth is a quota a day by another name.
BURST_S_MAX = 3600
#: Two secrets of one key at once: time enough for the slowest change of programs.
KEY_OVERLAP_S_MAX = 90 * 86_400
#: Patterns of one API key: each is tried once for each name and then remembered.
PATTERNS_MAX = 100
#: How long the caches of the control plane hold without a word from the store (DESIGN section 2).
CONTROL_CACHE_MS = 5000
#: `last_used_at` of an API key is written at most this often.
LAST_USED_PAUSE_MS = 60_000
#: Messages that one filtered page reads at most before it says `count_at_least`.
FILTER_READS_MAX = 10_000
#: What a purge cancels before it answers; more takes an operation (a third of a second).
PURGED_AT_ONCE_MAX = 1000
#: That a consumer was seen is written at most this often: its rows are for people.
CONSUMER_SEEN_PAUSE_MS = 15_000
#: Who was not seen for so long is not shown any more.
CONSUMERS_SEEN_KEPT_MS = 86_400_000
#: Consumers that are remembered in all, and in one process: one that names itself anew at each
#: receive fills neither.
CONSUMERS_SEEN_MAX = 10_000
#: A finished operation is shown, and can be undone, for so long at least.
OPERATIONS_KEPT_MS = 30 * 86_400_000
#: Operations that are forgotten in one go: a database is not held up by a year's.
OPERATIONS_FORGOTTEN_MAX = 1000
#: The least an API key of the operator's own has (API.md).
API_KEY_CHARACTERS_MIN, API_KEY_CHARACTERS_MAX = 32, 256
