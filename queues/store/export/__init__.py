"""Leaving for a RocketMQ cluster: a store directory that a broker opens, made of everything live.

``source`` holds a store still as it was at one moment, while the platform runs on; ``liveness``
says of each record whether it still means something; ``freshlog`` writes what does to a fresh
CommitLog; ``brokerfiles`` writes what a broker wants to find beside it; ``run`` joins them.
"""
