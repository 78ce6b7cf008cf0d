"""Colours, and numbers in words: what a value looks like wherever it is drawn."""

from collections.abc import Mapping

from pinchpoint.diagnosis.verdict import CODES, Bottleneck
from pinchpoint.outputs.class_words import CLASS_COLOURS, CLASS_WORDS
from pinchpoint.snapshot import GpuState

# Okabe and Ito's palette: told apart by colour-blind eyes too.
BLUE, SKY, GREEN, YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
ORANGE, RED, PURPLE, GREY = "#E69F00", "#D55E00", "#CC79A7", "#8A8F98"

Words = Mapping[int, tuple[str, str]]  # a value's word and colour
Parts = Mapping[str, tuple[str, str]]  # likewise by legend
CLASSES: Words = {CODES[one]: (CLASS_WORDS[one], CLASS_COLOURS[one]) for one in Bottleneck}
UP: Words = {0: ("Down", RED), 1: ("Up", GREEN)}
HELP: Words = {0: ("No", GREY), 1: ("Yes", BLUE)}
HELD_DOWN: Words = {0: ("Free", GREEN), 1: ("Held down", RED)}
GOOD: Words = {0: ("No", RED), 1: ("Yes", GREEN)}
SIMULATED: Words = {0: ("No", GREEN), 1: ("Yes: nothing here is real", ORANGE)}
_STATES = {
    GpuState.OK: ("Well", GREEN),
    GpuState.LOST: ("Lost", RED),
    GpuState.RESET_REQUIRED: ("Needs a reset", ORANGE),
    GpuState.HUNG: ("Hangs", PURPLE),
    GpuState.ACCESS_DENIED: ("Closed to us", YELLOW),
    GpuState.UNKNOWN: ("Unknown", GREY),
}
CLASS_PARTS: Parts = {str(one): (CLASS_WORDS[one], CLASS_COLOURS[one]) for one in Bottleneck}
FINISHED: Parts = {
    "stop": ("stop", GREEN),
    "length": ("length", BLUE),
    "abort": ("abort", ORANGE),
    "error": ("error", RED),
    "repetition": ("repetition", PURPLE),
}
GPU_STATES: Words = {number: _STATES[state] for number, state in enumerate(GpuState)}
