"""The demo is an order-timeout run over the REST API of a running platform.

Orders are posted with a payment deadline. Most are paid, so their message is cancelled; the others
reach a consumer group at their deadline, which closes them. The run then accounts for every order:

* `orders`     the plan: which order is posted how, due when, paid when (pure, from a seed)
* `accounts`   what became of each order, and the summary (pure)
* `client`     the REST client that repeats a request until it is answered
* `buyers`     post and pay
* `closers`    the consumer group
* `launching`  starts a platform of its own when no address is given
* `run`        one run from first post to summary
* `progress`   the line that is printed while it runs
"""
