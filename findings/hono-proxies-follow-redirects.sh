#!/bin/sh
# hono 4.13.19 (proxy() of hono/proxy, its helper for reverse proxies): a guess says that a redirect of the server behind it reaches the
# browser, as with httpxy 0.5.6 and h3 2.0.8. Yet proxy() follows it and hands over what it finds there: a login that redirects to the
# provider shows the provider's page under the address of the application, and after a POST that sets a cookie and redirects (303) the
# browser has the next page and no cookie, so that a user who has just logged in is not. No status tells of it, since each is 200. With
# proxyRequest() of h3 1.15.11, on which Nitro 2 stands, it is the same. Both take `redirect: 'manual'`.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts hono@4.13.19 @hono/node-server@2.1.9 h3@2.0.8 h3-1@npm:h3@1.15.11 httpxy@0.5.6
cat >redirects.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import * as h3 from 'h3'
import * as h31 from 'h3-1'
import { Hono } from 'hono'
import { proxy } from 'hono/proxy'
import { createProxyServer } from 'httpxy'

async function listen(listener) {
  const server = createServer(listener)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${server.address().port}`
}
const provider = await listen((_request, response) => response.end('page of the provider'))
const target = await listen((request, response) => {
  request.resume()
  if (request.url === '/login') response.writeHead(302, { location: `${provider}/` }).end()
  else if (request.url === '/enter') response.writeHead(303, { location: '/account', 'set-cookie': 'sid=1' }).end()
  else response.end(`page of ${request.url}`)
})
const proxies = {
  hono: (redirect) => getRequestListener(new Hono().all('*', (c) => proxy(target + c.req.path, { raw: c.req.raw, ...redirect })).fetch),
  'h3 1': (redirect) =>
    h31.toNodeListener(h31.createApp().use(h31.eventHandler((event) => h31.proxyRequest(event, target + event.path, { fetchOptions: redirect })))),
  'h3 2': () => h3.toNodeHandler(new h3.H3().all('/**', (event) => h3.proxyRequest(event, target + event.url.pathname))),
  httpxy: () => (request, response) => createProxyServer({ target }).web(request, response),
}
for (const [name, make] of Object.entries(proxies)) {
  for (const redirect of make.length ? [{}, { redirect: 'manual' }] : [{}]) {
    const origin = await listen(make(redirect))
    const answers = []
    for (const [method, path] of [['GET', '/login'], ['POST', '/enter']]) {
      const response = await fetch(origin + path, { method, redirect: 'manual' })
      answers.push(`${path} ${response.status} ${await response.text()}${response.headers.has('set-cookie') ? 'cookie' : ''}`.trim())
    }
    console.log(`${[name, ...Object.values(redirect)].join(', ')}: ${answers.join('; ')}`)
  }
}
process.exit()
JS
seen=$(node redirects.mjs)
echo "$seen"
[ "$seen" = 'hono: /login 200 page of the provider; /enter 200 page of /account
hono, manual: /login 302; /enter 303 cookie
h3 1: /login 200 page of the provider; /enter 200 page of /account
h3 1, manual: /login 302; /enter 303 cookie
h3 2: /login 302; /enter 303 cookie
httpxy: /login 302; /enter 303 cookie' ]
