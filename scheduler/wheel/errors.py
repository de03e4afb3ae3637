"""What goes wrong in the wheel."""

from queues.store.errors import StoreError, StoreUnsupported


class ChainBroken(StoreError):
    """A slot of the timer wheel leads to units that the TimerLog does not hold."""

    hint = "The wheel is rebuilt from the schedule table by itself."


class WheelSizeDiffers(StoreUnsupported):
    """The `timerwheel` file was made for another slot width or wheel span."""

    hint = "Stop Postdate, delete `timerwheel`, `timerlog` and `config/timercheck`, and start it."


class StepNotOpened(StoreError):
    """The wheel's step was asked to advance before it was opened."""
