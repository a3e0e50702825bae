"""Sends logs to Weir without ever blocking or harming the program.

    import logging, weir
    logging.getLogger().addHandler(weir.Handler())
    logging.warning("cart is full", extra={"cart": 4711})

The address and the key come from WEIR_BASE_URL, WEIR_API_KEY and, where the
server has a certificate authority of its own, WEIR_CA_FILE.
"""

from .client import Client, Stats
from .handler import Handler

__all__ = ["Client", "Handler", "Stats"]
__version__ = "0.1.0"
