#!/bin/sh
# simple-oauth2 5.1.0: a guess says that a refresh whose answer has no new refresh token, which RFC 6749, section 6, leaves to the
# provider, keeps the old one, since "refresh_token" is an own property of the new token and 5.1.0 was released to keep it
# (lelylan/simple-oauth2#434). Yet its value is undefined, and `{ ...old, ...new }` loses it as well. The next refresh does not throw
# beforehand, but sends `refresh_token=`: a login works for two lifetimes of an access token, longer than most tests.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts simple-oauth2@5.1.0
cat >refresh.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { AuthorizationCode } from 'simple-oauth2'

const provider = createServer(async (request, response) => {
  console.log(`sent: ${new URLSearchParams(await text(request))}`)
  response.setHeader('content-type', 'application/json')
  response.end('{"access_token":"new","token_type":"Bearer","expires_in":60}')
})
await once(provider.listen(0, '127.0.0.1'), 'listening')
const tokenHost = `http://127.0.0.1:${provider.address().port}`
const client = new AuthorizationCode({ client: { id: 'page', secret: 'secret' }, auth: { tokenHost } })
const first = client.createToken({ access_token: 'old', refresh_token: 'r-1', expires_in: 60 })
const second = await first.refresh()
const { refresh_token } = { ...first.token, ...second.token }
console.log(`kept: ${'refresh_token' in second.token}, ${refresh_token}`)
await second.refresh()
provider.close()
JS
seen=$(node refresh.mjs)
echo "$seen"
[ "$seen" = 'sent: grant_type=refresh_token&refresh_token=r-1
kept: true, undefined
sent: grant_type=refresh_token&refresh_token=' ]
