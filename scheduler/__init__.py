"""The scheduler: when messages move. Loops, the delay levels, the timer wheel, housekeeping."""
