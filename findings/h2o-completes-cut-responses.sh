#!/bin/sh
# h2o 2.2.5 (Debian 12), proxy.reverse.url: a guess says that a chunked response whose server dies in the middle reaches a client as a
# failure: the connection ends without the last chunk, or the HTTP/2 stream is reset. Yet h2o ends it in good order, over HTTP/1.1 as
# over HTTP/2, so that half a CSV of trades looks like all of them. Other than lighttpd 1.4.69, it streams the response, and has no
# setting that changes this. A response with a Content-Length fails as it should.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q h2o=2.2.5+dfsg2-7 >log 2>&1 || { cat log; exit 1; }
dpkg -x h2o_2.2.5*.deb h2o
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out certificate.pem -days 2 \
  -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
cat >see.mjs <<'JS'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect } from 'node:http2'
import { get } from 'node:https'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'

const dies = createServer((request, response) => {
  if (request.url === '/') return response.end()
  const length = request.url === '/measured.csv' ? { 'content-length': 100 } : {}
  response.writeHead(200, { 'content-type': 'text/csv', ...length })
  response.write('id,price\n1,2.50\n', () => setTimeout(() => response.destroy(), 200))
})
const free = createServer()
for (const server of [dies, free]) await once(server.listen(0, 'localhost'), 'listening')
const { port } = free.address()
free.close()
writeFileSync('h2o.conf', `
listen:
  host: localhost
  port: ${port}
  ssl:
    certificate-file: certificate.pem
    key-file: key.pem
    ocsp-update-interval: 0
hosts:
  default:
    paths:
      "/":
        proxy.reverse.url: "http://localhost:${dies.address().port}/"
${process.getuid() === 0 ? 'user: root' : ''}
`)
const proxy = spawn('h2o/usr/bin/h2o', ['-m', 'worker', '-c', 'h2o.conf'], { stdio: 'ignore' })
const exited = once(proxy, 'exit')
const ca = readFileSync('certificate.pem')
const overHttp1 = async (path) => {
  const [response] = await once(get({ host: 'localhost', port, path, ca, agent: false }), 'response')
  return text(response).then(JSON.stringify, () => 'the body failed')
}
const overHttp2 = async (path) => {
  const session = connect(`https://localhost:${port}`, { ca })
  const stream = session.request({ ':path': path })
  const body = await text(stream).then(JSON.stringify, () => 'the body failed')
  session.close()
  return `${body}, code ${stream.rstCode}`
}
for (let tries = 0; (await overHttp1('/').catch(() => undefined)) === undefined; tries++) {
  if (tries === 50) throw new Error('h2o does not listen')
  await delay(100)
}
console.log(`HTTP/1.1: ${await overHttp1('/trades.csv')}`)
console.log(`HTTP/2: ${await overHttp2('/trades.csv')}`)
console.log(`with a length: ${await overHttp1('/measured.csv')}`)
proxy.kill()
await exited
process.exit()
JS
seen=$(node see.mjs)
printf "%s\n" "$seen"
[ "$seen" = 'HTTP/1.1: "id,price\n1,2.50\n"
HTTP/2: "id,price\n1,2.50\n", code 0
with a length: the body failed' ]
