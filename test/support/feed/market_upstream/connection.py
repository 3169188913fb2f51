"""One client of the service."""

import asyncio
import json
import random

import websockets

from market import Number, Refused
from operations import OPERATIONS, validate

MAX_SUBSCRIPTIONS = 100


class Connection:
    """One client. Its messages leave in order, at the pace that the orders set."""

    def __init__(self, socket, market):
        self.socket, self.market = socket, market
        market.opened += 1
        self.number, self.ids, self.streams = market.opened, 0, {}
        self.outgoing = asyncio.Queue()

    async def serve(self):
        self.market.connections[self.number] = self
        writing = asyncio.create_task(self.write())
        try:
            async for text in self.socket:
                self.market.received.append((self.number, text if isinstance(text, str) else None))
                self.receive(text)
        except websockets.ConnectionClosed:
            pass
        finally:
            writing.cancel()
            del self.market.connections[self.number]

    async def write(self):
        try:
            while True:
                text = await self.outgoing.get()
                await self.market.flowing.wait()
                if self.market.jitter_ms > 0:
                    await asyncio.sleep(self.market.writer.chance.random() * self.market.jitter_ms / 1000)
                await self.socket.send(text)
                self.outgoing.task_done()
        except websockets.ConnectionClosed:
            pass

    async def settled(self):
        """Resolves once the client has read whatever was to be sent so far: it answers a ping after that. Or once it has gone."""

        async def read():
            await self.outgoing.join()
            await (await self.socket.ping())

        tasks = [asyncio.create_task(each) for each in [read(), self.socket.wait_closed()]]
        _, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()

    def receive(self, text):
        try:
            request = json.loads(text, parse_int=Number, parse_float=Number)
        except ValueError:
            request = None
        if not isinstance(request, dict):
            return self.respond({}, "error", {"error": Refused("BadRequest", "This is not a JSON object.").error})
        name = next((key for key in request if key in OPERATIONS), None)
        if name is None:
            error = Refused("UnrecognisedRequest", "Unrecognised request.").error
            return self.respond(request, "error", {"error": error})
        try:
            validate(name, request)
            OPERATIONS[name][1](self, request)
        except Refused as refused:
            kind = {"ticks": "tick", "ticks_history": "history"}.get(name, name)
            self.respond(request, kind, {"error": refused.error})

    def respond(self, request, kind, body, subscription=None):
        message = {"echo_req": request, "msg_type": kind} | body
        if subscription is not None:
            message["subscription"] = {"id": subscription}
        for name in ["req_id", "passthrough"]:
            if name in request:
                message[name] = request[name]
        if self.market.omitted_req_ids > 0:
            self.market.omitted_req_ids -= 1
            message.pop("req_id", None)
        self.outgoing.put_nowait(self.market.writer.text(message))

    def check_new(self, *subjects):
        for subject in subjects:
            if any(stream[0] == subject for stream in self.streams.values()):
                raise Refused("AlreadySubscribed", f"You are already subscribed to {subject[1]}")
        self.market.subscribed += 1
        if self.market.refuse_every and self.market.subscribed % self.market.refuse_every == 0:
            raise Refused("RateLimit", "You have reached the rate limit for ticks.")
        if len(self.streams) + len(subjects) > MAX_SUBSCRIPTIONS:
            raise Refused("RateLimit", "You have reached the limit of subscriptions.")

    def stream(self, subject, on_move, request):
        """Starts a stream and returns its id, which says nothing about its subject and never comes again."""
        self.ids += 1
        identifier = f"{self.number:08x}-{self.ids:04x}-4000-8000-{random.Random(self.ids).getrandbits(48):012x}"
        self.streams[identifier] = (subject, lambda: on_move(identifier), request)
        return identifier

    def moved(self, code):
        for subject, on_move, _ in list(self.streams.values()):
            if subject[1] == code:
                on_move()

    def end_streams(self, code):
        for identifier, (subject, _, request) in list(self.streams.items()):
            if subject[1] == code:
                del self.streams[identifier]
                error = Refused("MarketIsClosed", "This market is presently closed.").error
                self.respond(request, "ohlc" if subject[0] == "candles" else "tick", {"error": error}, identifier)
