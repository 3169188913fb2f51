"""A WebSocket peer of another make: Debian's python3-websockets, as upstream or as browser.

    websocket_peer.py upstream <seed> <count>              prints its port, then serves one connection
    websocket_peer.py browser <seed> <count> <url> <origin>

Either sends `count` random messages, whole or in fragments, with pings in between, and reads what comes. In the end it
prints a JSON line: digests of what was sent and of what was received, in order and with their types, and the close code.
"""

import asyncio
import hashlib
import json
import random
import sys

import websockets

SIZES = [0, 1, 125, 126, 127, 1000, 65_535, 65_536]
LARGE = [65_537, 300_000, 1_048_576]
LAST = "that was the last one"


class Digest:
    def __init__(self):
        self.count = 0
        self.hash = hashlib.sha256()

    def add(self, message):
        kind, data = ("text", message.encode()) if isinstance(message, str) else ("binary", message)
        self.count += 1
        self.hash.update(f"{kind} {len(data)} ".encode() + data)

    def told(self):
        return f"{self.count} {self.hash.hexdigest()}"


def text_of(chance, size):
    letters = []
    while size > 0:
        letter = chance.choice("aé€😀")
        if len(letter.encode()) <= size:
            letters.append(letter)
            size -= len(letter.encode())
    return "".join(letters)


def fragments(chance, message):
    cuts = sorted(chance.randint(0, len(message)) for _ in range(chance.randint(1, 5)))
    return [message[a:b] for a, b in zip([0, *cuts], [*cuts, len(message)])]


async def talk(socket, seed, count, sizes):
    chance = random.Random(seed)
    sent, received = Digest(), Digest()

    async def speak():
        for index in range(count):
            size = chance.choice(sizes)
            message = chance.randbytes(size) if chance.random() < 0.5 else text_of(chance, min(size, 65_536))
            sent.add(message)
            await socket.send(fragments(chance, message) if chance.random() < 0.3 else message)
            if chance.random() < 0.2:
                await socket.ping(f"{index} ".encode() + chance.randbytes(chance.randint(0, 115)))
        await socket.send(LAST)

    async def listen():
        async for message in socket:
            if message == LAST:
                return
            received.add(message)

    await asyncio.gather(speak(), listen())
    return sent, received


def tell(sent, received, socket):
    outcome = {"sent": sent.told(), "received": received.told(), "code": socket.close_code, "reason": socket.close_reason}
    print(json.dumps(outcome), flush=True)


async def upstream(seed, count):
    over = asyncio.get_running_loop().create_future()

    async def serve(socket):
        sent, received = await talk(socket, seed, count, SIZES + LARGE)
        await socket.wait_closed()
        tell(sent, received, socket)
        over.set_result(None)

    async with websockets.serve(serve, "127.0.0.1", 0, compression=None, max_size=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await over


async def browser(seed, count, url, origin):
    async with websockets.connect(url, origin=origin, compression=None, max_size=None) as socket:
        sent, received = await talk(socket, seed, count, SIZES)
        await socket.close(4321, "done €")
    tell(sent, received, socket)


role, seed, count, *rest = sys.argv[1:]
asyncio.run({"upstream": upstream, "browser": browser}[role](int(seed), int(count), *rest))
