"""A market data service of another make: Debian's python3-websockets instead of ws, and nothing shared with the sandbox.

    python3 market_upstream <seed>      prints its port, then obeys one JSON order a line of stdin, each answered by a line

Prices move only when an order says so, and depend on nothing but the number of moves, so that two servers see the same
market. What it writes is valid but unusual JSON: keys in any order, white space, escapes, numbers such as 842.10 and 8e2.
Symbols that begin with O_ behave like the others. Orders are the methods of Orders below.
"""

import asyncio
import http
import json
import sys

import websockets

from connection import Connection
from market import Market


class Orders:
    """Each method is an order; its result is the answer."""

    def __init__(self, market):
        self.market = market

    def emit(self, symbols, times=1):
        """Moves prices, and returns the number of moves of each symbol so far."""
        for _ in range(times):
            for code in symbols:
                self.market.symbols[code].move()
                self.market.moves += 1
                for connection in list(self.market.connections.values()):
                    connection.moved(code)
        return {code: symbol.count for code, symbol in self.market.symbols.items()}

    def flow(self, on):
        """Holds back whatever would be sent, or lets it go."""
        self.market.flowing.set() if on else self.market.flowing.clear()

    async def settle(self):
        """Waits until every client has read whatever was to be sent to it so far."""
        await asyncio.gather(*(connection.settled() for connection in self.market.connections.values()))

    def jitter(self, ms):
        """Delays each message by up to so many ms, each connection by itself."""
        self.market.jitter_ms = ms

    def refuse(self, every):
        """Refuses every so many-th subscription from here on; 0 for none."""
        self.market.subscribed = 0
        self.market.refuse_every = every

    def handshakes(self, on):
        """Accepts new connections or answers them with 503."""
        self.market.refuses_handshakes = not on

    def omit(self, count):
        """Leaves req_id out of the next messages."""
        self.market.omitted_req_ids = count

    def end(self, symbol):
        """Ends all streams of a symbol with an error."""
        for connection in list(self.market.connections.values()):
            connection.end_streams(symbol)

    def say(self, text):
        """Sends a text to every connection."""
        for connection in list(self.market.connections.values()):
            connection.outgoing.put_nowait(text)

    async def lose(self, how):
        """Ends all connections: close (with a close frame), reset, or silent (reads and writes no more)."""
        lost = list(self.market.connections.values())
        for connection in lost:
            if how == "close":
                await connection.socket.close(1001, "going away")
            elif how == "reset":
                connection.socket.transport.abort()
            else:
                connection.socket.transport.pause_reading()
                connection.outgoing = asyncio.Queue()
        return len(lost)

    def state(self):
        """The open connections with the subjects of their streams, and how many messages have arrived."""
        connections = [[stream[0] for stream in it.streams.values()] for it in self.market.connections.values()]
        return {"connections": connections, "received": len(self.market.received), "opened": self.market.opened}

    def log(self):
        """All messages that have arrived since the last such order, with the number of their connection."""
        received = list(self.market.received)
        self.market.received.clear()
        return received


async def main(seed):
    market = Market(seed)
    orders = Orders(market)

    async def refuse(*_):
        return (http.HTTPStatus.SERVICE_UNAVAILABLE, [], b"") if market.refuses_handshakes else None

    async def serve(socket):
        await Connection(socket, market).serve()

    options = {"compression": None, "max_size": None, "ping_interval": None, "process_request": refuse}
    async with websockets.serve(serve, "127.0.0.1", 0, **options) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        reader = asyncio.StreamReader(limit=2**24)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            order = json.loads(line)
            answer = getattr(orders, order.pop("do"))(**order)
            print(json.dumps(await answer if asyncio.iscoroutine(answer) else answer), flush=True)


asyncio.run(main(int(sys.argv[1])))
