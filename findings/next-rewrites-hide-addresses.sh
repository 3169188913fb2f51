#!/bin/sh
# Next 16.4.6: a guess says that a rewrite to another server adds X-Forwarded-For as a reverse proxy does, since it adds
# X-Forwarded-Host, and since pages of Next see an X-Forwarded-For that Next has added. Yet a rewrite adds none, neither to a request
# nor to a WebSocket, and passes on the one that the browser has sent. So the server behind sees all users at one address, or, if it
# trusts Next as its proxy, at the address of their choice. Seen: "page 127.0.0.1, rewrite none, forged 192.0.2.7, socket none".
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund next@16.4.6 react@19.3.1 react-dom@19.3.1 ws@8.23.0
mkdir pages
cat >pages/page.js <<'JS'
export default ({ seen }) => seen
export const getServerSideProps = ({ req }) => ({ props: { seen: `<${req.headers['x-forwarded-for'] ?? 'none'}>` } })
JS
cat >next.config.mjs <<'JS'
export default { rewrites: async () => [{ source: '/other', destination: `${process.env.OTHER}/other` }] }
JS
cat >see.mjs <<'JS'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { WebSocket, WebSocketServer } from 'ws'
const forwarded = ({ headers }) => headers['x-forwarded-for'] ?? 'none'
const other = createServer((request, response) => response.end(forwarded(request))).listen(0, '127.0.0.1')
new WebSocketServer({ server: other }).on('connection', (socket, request) => socket.send(forwarded(request)))
const free = createServer().listen(0, '127.0.0.1')
await Promise.all([once(other, 'listening'), once(free, 'listening')])
const { port } = free.address()
free.close()
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', OTHER: `http://127.0.0.1:${other.address().port}` }
const next = ['node_modules/next/dist/bin/next']
execFileSync(process.execPath, [...next, 'build'], { env, stdio: 'ignore' })
const options = [...next, 'start', '--hostname', '127.0.0.1', '--port', port]
const server = spawn(process.execPath, options, { env, stdio: ['ignore', 'pipe', 'ignore'] })
for await (const line of server.stdout) if (String(line).includes('Ready')) break
const at = `127.0.0.1:${port}`
const get = async (path, headers) => (await fetch(`http://${at}${path}`, { headers })).text()
const [, page] = /&lt;(.*?)&gt;/.exec(await get('/page'))
const [plain, forged] = [await get('/other'), await get('/other', { 'x-forwarded-for': '192.0.2.7' })]
const [socket] = await once(new WebSocket(`ws://${at}/other`), 'message')
console.log(`page ${page}, rewrite ${plain}, forged ${forged}, socket ${socket}`)
server.kill()
process.exit()
JS
seen=$(node see.mjs)
echo "$seen"
[ "$seen" = 'page 127.0.0.1, rewrite none, forged 192.0.2.7, socket none' ]
