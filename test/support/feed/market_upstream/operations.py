"""The operations: the properties with their checks, and what they do."""

import json
import re

from market import FIRST_EPOCH, SYMBOLS, Number, Refused

DEFAULT_COUNT = 20
GRANULARITIES = ["60", "120", "180", "300", "600", "900", "1800", "3600", "7200", "14400", "28800", "86400"]
STREAM_TYPES = ["ticks", "candles", "proposal", "proposal_open_contract", "balance", "transaction"]


def ticks(connection, request):
    codes = request["ticks"] if isinstance(request["ticks"], list) else [request["ticks"]]
    symbols = [connection.market.symbol(code) for code in dict.fromkeys(codes)]
    is_stream = request.get("subscribe") == "1"
    if is_stream:
        connection.check_new(*(("ticks", symbol.code) for symbol in symbols))
    for symbol in symbols:
        identifier = stream_ticks(connection, request, symbol) if is_stream else None
        identity = {} if identifier is None else {"id": identifier}
        connection.respond(request, "tick", {"tick": symbol.tick() | identity}, identifier)


def stream_ticks(connection, request, symbol):
    def send(identifier):
        connection.respond(request, "tick", {"tick": symbol.tick() | {"id": identifier}}, identifier)

    return connection.stream(("ticks", symbol.code), send, request)


def ticks_history(connection, request):
    symbol = connection.market.symbol(request["ticks_history"])
    start, end = int(request.get("start", 0)), request.get("end", "latest")
    shown = [tick for tick in symbol.ticks if tick[0] >= start and (end == "latest" or tick[0] <= int(end))]
    count = int(request.get("count", DEFAULT_COUNT))
    is_stream, identifier = request.get("subscribe") == "1", None
    if request.get("style") == "candles":
        seconds = int(request.get("granularity", 60))
        subject = ("candles", symbol.code, seconds)
        if is_stream:
            def send(identifier):
                connection.respond(request, "ohlc", {"ohlc": symbol.ohlc(seconds) | {"id": identifier}}, identifier)

            connection.check_new(subject)
            identifier = connection.stream(subject, send, request)
        body = {"candles": symbol.candles(seconds, shown)[-count:], "pip_size": 2}
        return connection.respond(request, "candles", body, identifier)
    if is_stream:
        connection.check_new(("ticks", symbol.code))
        identifier = stream_ticks(connection, request, symbol)
    history = {"prices": [quote for _, quote, _ in shown[-count:]], "times": [epoch for epoch, _, _ in shown[-count:]]}
    connection.respond(request, "history", {"history": history, "pip_size": 2}, identifier)


def proposal(connection, request):
    symbol = connection.market.symbol(request["underlying_symbol"])

    def body(identifier):
        quote = {"ask_price": request["amount"], "payout": Number("18.180"), "spot": symbol.ticks[-1][1], "longcode": "Gewinn ≥ 1 €"}
        return {"proposal": quote | ({} if identifier is None else {"id": identifier})}

    identifier = None
    if request.get("subscribe") == "1":
        terms = json.dumps([request["amount"], request["contract_type"], request["duration"]])
        connection.check_new(("proposal", symbol.code, terms))
        send = lambda identifier: connection.respond(request, "proposal", body(identifier), identifier)
        identifier = connection.stream(("proposal", symbol.code, terms), send, request)
    connection.respond(request, "proposal", body(identifier), identifier)


def forget(connection, request):
    known = connection.streams.pop(request["forget"], None)
    connection.respond(request, "forget", {"forget": 0 if known is None else 1})


def forget_all(connection, request):
    types = request["forget_all"] if isinstance(request["forget_all"], list) else [request["forget_all"]]
    ids = [identifier for identifier, stream in connection.streams.items() if stream[0][0] in types]
    for identifier in ids:
        del connection.streams[identifier]
    connection.respond(request, "forget_all", {"forget_all": ids})


def contracts_for(connection, request):
    symbol = connection.market.symbol(request["contracts_for"])
    available = [{"contract_type": kind, "barrier": Number("1.10"), "symbol": symbol.code} for kind in ["CALL", "PUT"]]
    connection.respond(request, "contracts_for", {"contracts_for": {"available": available, "hit_count": 2}})


def always(name, value):
    return lambda connection, request: connection.respond(request, name, {name: value})


def is_one(value):
    return value in (Number("1"),) and isinstance(value, Number)


def is_integer(value):
    return isinstance(value, Number) and re.fullmatch(r"-?\d+", value) is not None


def is_text(value):
    return isinstance(value, str) and not isinstance(value, Number)


def one_of(*values):
    return lambda value: is_text(value) and value in values


def list_or_one(check):
    return lambda value: all(map(check, value)) if isinstance(value, list) else check(value)


SUBSCRIBE = lambda value: isinstance(value, Number) and value in ("0", "1")
ACTIVE = [{"symbol": code, "display_name": "Índice €", "pip": Number("0.010"), "spot_age": None} for code in SYMBOLS]
OPERATIONS = {
    "ticks": ({"ticks": lambda value: value != [] and list_or_one(is_text)(value), "subscribe?": SUBSCRIBE}, ticks),
    "ticks_history": ({
        "ticks_history": is_text, "subscribe?": SUBSCRIBE, "adjust_start_time?": is_one, "start?": is_integer,
        "count?": lambda value: is_integer(value) and int(value) > 0, "style?": one_of("ticks", "candles"),
        "end?": lambda value: value == "latest" or is_integer(value),
        "granularity?": lambda value: isinstance(value, Number) and value in GRANULARITIES,
    }, ticks_history),
    "active_symbols": ({"active_symbols": one_of("brief", "full")}, always("active_symbols", ACTIVE)),
    "contracts_for": ({"contracts_for": is_text, "currency?": is_text}, contracts_for),
    "contracts_list": ({"contracts_list": is_one}, always("contracts_list", [{"contract_types": ["CALL", "PUT"]}])),
    "trading_times": ({"trading_times": is_text}, always("trading_times", {"markets": [{"name": "Derived"}]})),
    "time": ({"time": is_one}, lambda connection, request: connection.respond(
        request, "time", {"time": FIRST_EPOCH + connection.market.moves})),
    "ping": ({"ping": is_one}, always("ping", "pong")),
    "proposal": ({
        "proposal": is_one, "subscribe?": SUBSCRIBE, "amount": lambda value: isinstance(value, Number),
        "basis": one_of("stake", "payout"), "contract_type": one_of("CALL", "PUT"), "currency": is_text,
        "underlying_symbol": is_text, "duration": is_integer, "duration_unit": one_of("t", "s", "m"),
    }, proposal),
    "forget": ({"forget": is_text}, forget),
    "forget_all": ({"forget_all": list_or_one(one_of(*STREAM_TYPES))}, forget_all),
}
COMMON = {"req_id?": is_integer, "passthrough?": lambda value: isinstance(value, dict)}


def validate(name, request):
    properties = OPERATIONS[name][0] | COMMON
    unknown = [key for key in request if key not in properties and f"{key}?" not in properties]
    if unknown:
        message = f"Input validation failed: Properties not allowed: {', '.join(unknown)}."
        raise Refused("InputValidationFailed", message, {})
    for key, check in properties.items():
        plain = key.rstrip("?")
        if plain not in request and key == plain or plain in request and not check(request[plain]):
            raise Refused("InputValidationFailed", f"Input validation failed: {plain}.", {plain: "Wrong."})
