"""What goes wrong in the wheel."""

from queues.store.errors import StoreUnsupported
from scheduler.engine.errors import EngineBroken


class ChainBroken(EngineBroken):
    """A slot of the timer wheel leads to units that the TimerLog does not hold."""


class WheelSizeDiffers(StoreUnsupported):
    """The `timerwheel` file was made for another slot width or wheel span."""

    hint = "Stop Postdate, run `manage.py timer_rebuild`, and start it again."
