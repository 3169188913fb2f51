#!/bin/sh
# lighttpd 1.4.69 (Debian 12), mod_proxy: a guess says that a 103 with its Link either reaches a browser or is left out, as h2o 2.2.5
# leaves it out, and that the response follows it in any case. Yet over HTTP/2 a client refuses what lighttpd sends as a PROTOCOL_ERROR,
# so that there is no response at all: a server that starts to send Early Hints breaks for browsers alone. A 102, which has no fields,
# passes, and so does a 103 over HTTP/1.1, which most tests of a server use. Version 1.4.79 passes both.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q lighttpd=1.4.69-1 lighttpd-mod-openssl=1.4.69-1 >log 2>&1 || { cat log; exit 1; }
for each in *.deb; do dpkg -x "$each" lighttpd; done
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out certificate.pem -days 2 \
  -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
cat certificate.pem key.pem >both.pem
cat >see.mjs <<'JS'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect } from 'node:http2'
import { get } from 'node:https'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'

const server = createServer((request, response) => {
  if (request.url === '/102') response.writeProcessing()
  if (request.url === '/103') response.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' })
  setTimeout(() => response.end('a page'), 100)
})
const free = createServer()
for (const each of [server, free]) await once(each.listen(0, 'localhost'), 'listening')
const { port } = free.address()
free.close()
writeFileSync('lighttpd.conf', `
  server.document-root = "${process.cwd()}"
  server.bind = "localhost"
  server.port = ${port}
  server.modules = ("mod_proxy", "mod_openssl")
  ssl.engine = "enable"
  ssl.pemfile = "both.pem"
  proxy.server = ("" => (("host" => "localhost", "port" => ${server.address().port})))`)
const words = ['-D', '-f', 'lighttpd.conf', '-m', 'lighttpd/usr/lib/lighttpd']
const proxy = spawn('lighttpd/usr/sbin/lighttpd', words, { stdio: 'ignore' })
const exited = once(proxy, 'exit')
const ca = readFileSync('certificate.pem')
const overHttp1 = async (path) => {
  const seen = []
  const request = get({ host: 'localhost', port, path, ca, agent: false })
  request.on('information', ({ statusCode }) => seen.push(statusCode))
  const [response] = await once(request, 'response')
  return [...seen, response.statusCode, await text(response)].join(', ')
}
const overHttp2 = async (path) => {
  const seen = []
  const session = connect(`https://localhost:${port}`, { ca })
  const stream = session.request({ ':path': path })
  for (const name of ['headers', 'response']) stream.on(name, (headers) => seen.push(headers[':status']))
  const body = await text(stream).catch((error) => error.message)
  session.close()
  return [...seen, body].join(', ')
}
for (let tries = 0; (await overHttp1('/').catch(() => undefined)) === undefined; tries++) {
  if (tries === 50) throw new Error('lighttpd does not listen')
  await delay(100)
}
for (const path of ['/102', '/103']) {
  console.log(`HTTP/1.1: ${await overHttp1(path)}`)
  console.log(`HTTP/2: ${await overHttp2(path)}`)
}
proxy.kill()
await exited
process.exit()
JS
seen=$(node see.mjs)
printf "%s\n" "$seen"
[ "$seen" = 'HTTP/1.1: 102, 200, a page
HTTP/2: 102, 200, a page
HTTP/1.1: 103, 200, a page
HTTP/2: Stream closed with error code NGHTTP2_PROTOCOL_ERROR' ]
