#!/bin/sh
# supertest 7.3.2 (request.agent(), whose cookies are kept by superagent 10.4.2 in cookiejar 2.1.4): a guess says that an agent, which
# keeps the cookies of a user from call to call, forgets one when its time is over or when the server ends it with Max-Age=0, as browsers
# and tough-cookie 6.1.0 do. Yet it knows Expires alone. After Max-Age=0, which is all that Go's net/http writes to delete a cookie, the
# cookie is sent on with an empty value, and a cookie of one second is sent for as long as the agent lives. So a test of what a page gets
# after a logout, or after a login has run out, sees what no browser sends.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts supertest@7.3.2 superagent@10.4.2 cookiejar@2.1.4 tough-cookie@6.1.0
cat >logout.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import request from 'supertest'
import { CookieJar } from 'tough-cookie'

const cookies = {
  '/login': 'sid=secret; Path=/',
  '/logout-max-age': 'sid=; Path=/; Max-Age=0',
  '/logout-expires': 'sid=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT',
  '/short': 'sid=second; Path=/; Max-Age=1',
}
const server = createServer((call, response) => {
  if (cookies[call.url]) response.setHeader('set-cookie', cookies[call.url])
  response.end(call.headers.cookie ?? 'nothing')
})
await once(server.listen(0, '127.0.0.1'), 'listening')
const origin = `http://127.0.0.1:${server.address().port}`
const clients = {
  supertest: () => {
    const agent = request.agent(origin)
    return async (path) => (await agent.get(path)).text
  },
  'tough-cookie': () => {
    const jar = new CookieJar()
    return async (path) => {
      const cookie = await jar.getCookieString(origin + path)
      const response = await fetch(origin + path, { headers: cookie ? { cookie } : {} })
      for (const line of response.headers.getSetCookie()) await jar.setCookie(line, origin + path)
      return response.text()
    }
  },
}
for (const [name, make] of Object.entries(clients)) {
  const seen = []
  for (const path of ['/logout-max-age', '/logout-expires', '/short']) {
    const get = make()
    await get('/login')
    await get(path)
    if (path === '/short') await sleep(1500)
    seen.push(`${path} ${await get('/page')}`)
  }
  console.log(`${name}: ${seen.join(', ')}`)
}
process.exit()
JS
seen=$(node logout.mjs)
echo "$seen"
[ "$seen" = 'supertest: /logout-max-age sid=, /logout-expires nothing, /short sid=second
tough-cookie: /logout-max-age nothing, /logout-expires nothing, /short nothing' ]
