#!/bin/sh
# lighttpd 1.4.69 (Debian 12), mod_proxy: a guess says that after a graceful reload (SIGUSR1, `systemctl reload`) the open WebSockets
# stay with the old process while a new one serves, as with nginx and haproxy. Yet lighttpd by itself takes no connection until the
# last socket has closed: one open page makes every request of everybody wait, for eight seconds, after which the socket is cut with
# 1006. With server.graceful-shutdown-timeout = 300 alone, a usual remedy for the cut, requests wait for five minutes. It needs
# server.graceful-restart-bg as well, and a start by an absolute path. Version 1.4.79 cuts the socket at once instead.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q lighttpd=1.4.69-1 >log 2>&1 || { cat log; exit 1; }
dpkg -x lighttpd_1.4.69-1_*.deb lighttpd
npm install --silent --no-audit --no-fund ws@8.18.0
cat >see.mjs <<'JS'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket, WebSocketServer } from 'ws'

const server = createServer((_request, response) => response.end())
const sockets = new WebSocketServer({ server })
sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(data)))
const free = createServer()
for (const each of [server, free]) await once(each.listen(0, '127.0.0.1'), 'listening')
const { port } = free.address()
free.close()
const answered = (ms) =>
  fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' }, signal: AbortSignal.timeout(ms) }).then(
    ({ status }) => status,
    () => 'nothing',
  )
const seen = []
const timeout = '"server.graceful-shutdown-timeout" => 300'
for (const flags of ['', timeout, `${timeout}, "server.graceful-restart-bg" => "enable"`]) {
  writeFileSync('lighttpd.conf', `
    server.document-root = "${process.cwd()}"
    server.bind = "127.0.0.1"
    server.port = ${port}
    server.modules = ("mod_proxy")
    server.feature-flags = (${flags})
    proxy.header = ("upgrade" => "enable")
    proxy.server = ("" => (("host" => "127.0.0.1", "port" => ${server.address().port})))`)
  const words = ['-D', '-f', 'lighttpd.conf', '-m', `${process.cwd()}/lighttpd/usr/lib/lighttpd`]
  const proxy = spawn(`${process.cwd()}/lighttpd/usr/sbin/lighttpd`, words, { stdio: 'ignore', detached: true })
  for (let tries = 0; (await answered(1000)) !== 200; tries++) {
    if (tries === 50) throw new Error('lighttpd does not listen')
    await delay(100)
  }
  const page = new WebSocket(`ws://127.0.0.1:${port}/`)
  await once(page, 'open')
  const closed = once(page, 'close').then(([code]) => code)
  proxy.kill('SIGUSR1')
  await delay(500)
  const soon = await answered(4000)
  const end = await Promise.race([closed, delay(8000, 'open')])
  seen.push(`a request gets ${soon}, the socket ${end}`)
  page.terminate()
  process.kill(-proxy.pid, 'SIGKILL')
  await delay(500)
}
console.log(seen.join('\n'))
process.exit()
JS
seen=$(node see.mjs)
printf "%s\n" "$seen"
[ "$seen" = 'a request gets nothing, the socket 1006
a request gets nothing, the socket open
a request gets 200, the socket open' ]
