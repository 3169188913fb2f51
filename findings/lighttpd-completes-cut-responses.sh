#!/bin/sh
# lighttpd 1.4.69 (Debian 12), mod_proxy with its defaults: a guess says that a response whose server dies in the middle reaches the
# browser as a failure, since the chunks before it lack their end: a 502, or a connection that ends too early. Yet lighttpd, which has
# buffered the half, gives it a Content-Length of its own and sends it as a whole response, with 200. Half a CSV of trades looks like
# all of them. With server.stream-response-body = 1 the response has no end, and a fetch fails.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q lighttpd=1.4.69-1 >log 2>&1 || { cat log; exit 1; }
dpkg -x lighttpd_1.4.69-1_*.deb lighttpd
cat >see.mjs <<'JS'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

const dies = createServer((request, response) => {
  if (request.url === '/') return response.end()
  response.writeHead(200, { 'content-type': 'text/csv' })
  response.write('id,price\n1,2.50\n', () => setTimeout(() => response.destroy(), 200))
})
const free = createServer()
for (const server of [dies, free]) await once(server.listen(0, '127.0.0.1'), 'listening')
const { port } = free.address()
free.close()
const seen = []
for (const line of ['', 'server.stream-response-body = 1']) {
  writeFileSync('lighttpd.conf', `
    server.document-root = "${process.cwd()}"
    server.bind = "127.0.0.1"
    server.port = ${port}
    server.modules = ("mod_proxy")
    proxy.server = ("" => (("host" => "127.0.0.1", "port" => ${dies.address().port})))
    ${line}`)
  const words = ['-D', '-f', 'lighttpd.conf', '-m', 'lighttpd/usr/lib/lighttpd']
  const proxy = spawn('lighttpd/usr/sbin/lighttpd', words, { stdio: 'ignore' })
  const exited = once(proxy, 'exit')
  for (let tries = 0; !(await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined)); tries++) {
    if (tries === 50) throw new Error('lighttpd does not listen')
    await delay(100)
  }
  const response = await fetch(`http://127.0.0.1:${port}/trades.csv`)
  const body = await response.text().then(JSON.stringify, () => 'the body failed')
  seen.push(`${response.status}, content-length ${response.headers.get('content-length')}, ${body}`)
  proxy.kill()
  await exited
}
console.log(seen.join('\n'))
process.exit()
JS
seen=$(node see.mjs)
printf "%s\n" "$seen"
[ "$seen" = '200, content-length 16, "id,price\n1,2.50\n"
200, content-length null, the body failed' ]
