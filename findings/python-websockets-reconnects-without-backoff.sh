#!/bin/sh
# Python's websockets 10.4 (Debian 12, python3-websockets): a guess says that `async for websocket in connect(...)`, which "reconnects
# automatically with exponential backoff", waits longer and longer for a server that asks for a pause: it accepts the handshake, then
# closes with 1013 (try again later). Yet only a failed handshake makes it wait. After a close it connects at once, and so on: over
# a thousand handshakes in three seconds on a local server. A server that is busy has to refuse the handshake (503) to be heard.
set -eu
dpkg-query -W -f '${Version}' python3-websockets | grep -q '^10\.4-' || { echo 'It needs python3-websockets 10.4 of Debian 12.'; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >count.py <<'PY'
import asyncio
from http import HTTPStatus
from websockets import ConnectionClosed, connect, serve

LIMIT = 1000
SECONDS = 3

async def handshakes(refuses):
    """How many handshakes a client makes in three seconds, up to a thousand."""
    count = 0
    enough = asyncio.Event()

    async def seen(path, headers):
        nonlocal count
        count += 1
        if count == LIMIT:
            enough.set()
        return (HTTPStatus.SERVICE_UNAVAILABLE, [], b'') if refuses else None

    async def close(websocket):
        await websocket.close(1013, 'try again later')

    async def bot(port):
        async for websocket in connect(f'ws://127.0.0.1:{port}/'):
            try:
                async for _ in websocket:
                    pass
            except ConnectionClosed as closed:
                assert closed.code == 1013, closed.code

    async with serve(close, '127.0.0.1', 0, process_request=seen) as server:
        task = asyncio.create_task(bot(server.sockets[0].getsockname()[1]))
        try:
            await asyncio.wait_for(enough.wait(), SECONDS)
        except asyncio.TimeoutError:
            pass
        task.cancel()
    return count

accepted, refused = asyncio.run(handshakes(False)), asyncio.run(handshakes(True))
print(f'handshakes in {SECONDS} seconds, of at most {LIMIT}: {accepted} when each is accepted and closed, {refused} when each is refused')
assert accepted > 50 > 10 > refused > 0
PY
/usr/bin/python3 count.py 2>errors || { cat errors; exit 1; }
