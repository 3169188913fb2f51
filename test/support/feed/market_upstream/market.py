"""The market, and the JSON that it is told in."""

import asyncio
import collections
import json
import random
import re

KEPT_TICKS = 400
FIRST_TICKS = 60
FIRST_EPOCH = 1_760_000_000
SYMBOLS = ["R_10", "R_25", "R_50", "R_75", "R_100", "O_1"]


class Number(str):
    """A number as it was written."""


class Refused(Exception):
    def __init__(self, code, message, details=None):
        self.error = {"code": code, "message": message} | ({} if details is None else {"details": details})


class Writer:
    """Prints JSON with another layout each time."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def text(self, value):
        if isinstance(value, Number):
            return value
        if isinstance(value, dict):
            members = [f"{self.string(key)}{self.space()}:{self.space()}{self.text(item)}" for key, item in value.items()]
            self.chance.shuffle(members)
            return "{" + self.space() + f",{self.space()}".join(members) + "}"
        if isinstance(value, list):
            return "[" + ",".join(self.space() + self.text(item) for item in value) + self.space() + "]"
        if isinstance(value, str):
            return self.string(value)
        return json.dumps(value)

    def string(self, value):
        text = json.dumps(value, ensure_ascii=self.chance.random() < 0.5)
        if self.chance.random() < 0.03 and re.fullmatch(r'"[A-Za-z_]+"', text):
            at = self.chance.randrange(1, len(text) - 1)
            text = f"{text[:at]}\\u{ord(text[at]):04x}{text[at + 1:]}"
        return text

    def space(self):
        return self.chance.choice(["", "", "", "", " ", "\n", "\t "])


class Symbol:
    """A symbol whose n-th price is always the same: about 800 + n, written in one of several ways."""

    def __init__(self, code, place):
        self.code, self.base, self.count = code, 800 + place * 100_000, 0
        self.ticks = collections.deque(maxlen=KEPT_TICKS)
        for _ in range(FIRST_TICKS):
            self.move()

    def move(self):
        whole = self.base + self.count
        quote = [f"{whole}.10", f"{whole}", f"{whole}.2500", f"{whole}0e-1"][self.count % 4]
        # Two ticks of each epoch; three epochs of each minute.
        self.ticks.append((FIRST_EPOCH + self.count // 2 * 20, Number(quote), whole))
        self.count += 1

    def tick(self):
        epoch, quote, whole = self.ticks[-1]
        return {
            "ask": Number(f"{whole}.50"), "bid": Number(f"{whole}.0"), "epoch": epoch, "pip_size": 2, "quote": quote,
            "symbol": self.code,
        }

    def candles(self, seconds, ticks):
        all_of = {}
        for epoch, quote, _ in ticks:
            all_of.setdefault(epoch - epoch % seconds, []).append(quote)
        return [
            {"epoch": start, "open": quotes[0], "high": quotes[-1], "low": quotes[0], "close": quotes[-1]}
            for start, quotes in all_of.items()
        ]

    def ohlc(self, seconds):
        epoch = self.ticks[-1][0]
        candle = self.candles(seconds, self.ticks)[-1]
        prices = {name: str(candle[name]) for name in ["open", "high", "low", "close"]}
        return prices | {
            "epoch": epoch, "open_time": candle["epoch"], "granularity": seconds, "pip_size": 2, "symbol": self.code,
        }


class Market:
    def __init__(self, seed):
        self.writer = Writer(seed)
        self.symbols = {code: Symbol(code, place) for place, code in enumerate(SYMBOLS)}
        self.moves = 0
        self.connections = {}
        self.opened = 0
        self.received = collections.deque(maxlen=100_000)
        self.subscribed = 0
        # What the orders change.
        self.jitter_ms, self.refuse_every, self.omitted_req_ids, self.refuses_handshakes = 0, 0, 0, False
        self.flowing = asyncio.Event()
        self.flowing.set()

    def symbol(self, code):
        if code not in self.symbols:
            raise Refused("InvalidSymbol", f"Symbol {code} is invalid.")
        return self.symbols[code]
