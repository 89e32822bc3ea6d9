"""The GPU and the processors that a measurement was made on."""

import datetime
import subprocess

CARD = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem"
# With what changes from minute to minute.
CARD_NOW = f"{CARD},temperature.gpu,power.draw"


def said(command):
    """What a command prints; nothing where it is not there."""
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def card(query=CARD):
    """One line about the GPU; a measurement without it says nothing."""
    line = said(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"])
    if not line:
        raise SystemExit("nvidia-smi tells of no GPU: measure on a machine that has one, with its driver on PATH")
    return line


def today():
    """The date in UTC."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
