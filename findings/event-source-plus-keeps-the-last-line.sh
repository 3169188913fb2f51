#!/bin/sh
# event-source-plus 0.1.15: a guess says that a message whose data the server has written in several `data:` lines, as the HTML standard
# has it for a text with line feeds, arrives as that text. Yet only its last line does: of the standard's own example, a stock whose
# three lines are its name, its change and its price, a page gets "10". Nothing tells of the lost ones. Servers write each line of a
# text or of an indented JSON document in a `data:` of its own, so that a list in indented JSON is "]", which does not parse, but of
# lines that each are a document, such as quotes of NDJSON, the last quote is there and the others have never been. A server that writes
# its JSON in one line, as most tests do, shows nothing of it. eventsource-client 1.2.0 has all lines.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts event-source-plus@0.1.15 eventsource-client@1.2.0
cat >listen.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { EventSourcePlus } from 'event-source-plus'
import { createEventSource } from 'eventsource-client'

const texts = ['one line', 'YHOO\n+2\n10', '{"symbol":"A","price":1}\n{"symbol":"B","price":2}']
const server = createServer((request, response) => {
  response.setHeader('content-type', 'text/event-stream')
  for (const text of texts) response.write(`${text.replaceAll(/^/gm, 'data: ')}\n\n`)
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${server.address().port}/`
const clients = {
  'event-source-plus': (onMessage) => new EventSourcePlus(url).listen({ onMessage }).abort,
  'eventsource-client': (onMessage) => createEventSource({ url, onMessage }).close,
}
for (const [name, listen] of Object.entries(clients)) {
  const seen = await new Promise((resolve) => {
    const messages = []
    const end = listen(({ data }) => messages.push(data) === texts.length && resolve(messages))
  })
  console.log(`${name}: ${seen.map((text) => text.replaceAll('\n', ' / ')).join('; ')}`)
}
process.exit()
JS
seen=$(node listen.mjs)
echo "$seen"
[ "$seen" = 'event-source-plus: one line; 10; {"symbol":"B","price":2}
eventsource-client: one line; YHOO / +2 / 10; {"symbol":"A","price":1} / {"symbol":"B","price":2}' ]
