#!/bin/sh
# @microsoft/fetch-event-source 2.0.1: a guess says that a comment (`:` and an empty line), which servers send as a heartbeat so that no
# proxy ends a quiet stream, makes no message, as the HTML standard has it and EventSource does. Yet onmessage is called for it, with
# "" as `data`. A handler that begins with JSON.parse() throws, and what a handler throws makes the package connect again: a feed
# that is quiet loses its stream at each heartbeat, and the server has a new request of every browser. eventsource 4.1.1 makes none.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @microsoft/fetch-event-source@2.0.1 eventsource@4.1.1
cat >see.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { fetchEventSource } from '@microsoft/fetch-event-source'
import { EventSource } from 'eventsource'

const streams = []
const server = createServer((request, response) => {
  streams.push(request.url)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('data: {"bid":1.1}\n\n')
  let beats = 0
  const timer = setInterval(() => {
    response.write(++beats === 4 ? 'data: {"end":true}\n\n' : ': heartbeat\n\n')
    if (beats === 4) clearInterval(timer)
  }, 100)
  response.on('close', () => clearInterval(timer))
})
await once(server.listen(0, '127.0.0.1'), 'listening')
const url = `http://127.0.0.1:${server.address().port}`
await new Promise((resolve) => {
  const source = new EventSource(`${url}/EventSource`)
  source.onmessage = ({ data }) => JSON.parse(data).end && resolve(source.close())
})
const page = { hidden: false, addEventListener() {}, removeEventListener() {} }
Object.assign(globalThis, { window: globalThis, document: page })
const stop = new AbortController()
const faults = []
await fetchEventSource(`${url}/fetchEventSource`, {
  signal: stop.signal,
  onmessage: ({ data }) => JSON.parse(data).end && stop.abort(),
  onerror: (error) => {
    faults.push(error.name)
    if (faults.length === 3) stop.abort()
    return 1
  },
})
for (const path of ['/EventSource', '/fetchEventSource']) console.log(`${path}: ${streams.filter((each) => each === path).length} streams`)
console.log(faults.join(', '))
process.exit()
JS
seen=$(node see.mjs)
echo "$seen"
[ "$seen" = '/EventSource: 1 streams
/fetchEventSource: 3 streams
SyntaxError, SyntaxError, SyntaxError' ]
