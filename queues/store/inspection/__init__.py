"""Looking at any store directory, ours or a RocketMQ broker's, without changing a byte of it.

No lock is taken and nothing is created; sizes and precision are learned from the files, so that a
running broker's directory can be looked at too. Everything streams: what is kept in memory is a
bounded chunk of records and, for one index file at a time, its entries.

``layout`` finds out what lies where, ``log`` walks the CommitLog and steps over damage, ``units``,
``entries``, ``timer``, ``schedules`` and ``configs`` hold what is derived against the records,
``ownfiles`` looks at what only our stores have, ``verify`` joins them, ``dump`` prints.
"""
