#!/bin/sh
# RxJS 7.8.2 (webSocket): a guess says that `webSocket(url).pipe(retry({ delay }))` connects again whenever the server ends a stream
# that nobody has unsubscribed from, at least for the codes by which it asks for that: 1001, 1012 (service restart), 1013 (try again
# later). Yet RxJS does not look at the code: a close with a handshake (`wasClean`) completes the stream, whatever its code, and
# retry() is for errors alone. So a page survives a crash of the server, and stays without prices, and without an error, after a
# graceful restart or a close with 1011. Tests that cut connections pass. It takes repeat({ delay }) as well.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts rxjs@7.8.2 ws@8.23.0
cat >see.mjs <<'JS'
import { once } from 'node:events'
import { repeat, retry } from 'rxjs'
import { webSocket } from 'rxjs/webSocket'
import { WebSocket, WebSocketServer } from 'ws'

/** What becomes of a page that wants prices, when the server ends its first socket. */
async function outcome(end, again) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  let sockets = 0
  server.on('connection', (socket) => {
    if (++sockets === 1) end(socket)
    else socket.send('{"bid":1.1}')
  })
  const url = `ws://127.0.0.1:${server.address().port}/`
  return new Promise((resolve) => {
    webSocket({ url, WebSocketCtor: WebSocket })
      .pipe(...again)
      .subscribe({ next: () => resolve('prices again'), error: () => resolve('an error'), complete: () => resolve('complete') })
  })
}
for (const [what, end] of [
  ['a crash', (socket) => socket.terminate()],
  ...[1001, 1011, 1012, 1013].map((code) => [`${code}`, (socket) => socket.close(code)]),
]) {
  const outcomes = [await outcome(end, [retry({ delay: 10 })]), await outcome(end, [retry({ delay: 10 }), repeat({ delay: 10 })])]
  console.log(`${what}: ${outcomes.join(', with repeat() ')}`)
}
process.exit()
JS
seen=$(node see.mjs)
echo "$seen"
[ "$seen" = 'a crash: prices again, with repeat() prices again
1001: complete, with repeat() prices again
1011: complete, with repeat() prices again
1012: complete, with repeat() prices again
1013: complete, with repeat() prices again' ]
