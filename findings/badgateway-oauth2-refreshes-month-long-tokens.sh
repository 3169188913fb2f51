#!/bin/sh
# @badgateway/oauth2-client 3.3.1 (OAuth2Fetch, whose `scheduleRefresh` is on by default): a guess says that a token is refreshed a
# minute before it ends, so that one which lasts for 30 days hardly ever is. Yet the time until then is handed to one setTimeout(),
# which takes 24.8 days at most, and fires at once with more. The new token lasts for 30 days too, and so on: an open page refreshes as
# fast as the provider answers, with a new refresh token each time, until it is limited or closed. With tokens of 24 days there is not
# one refresh, so that a provider which makes its tokens last longer breaks its clients. Node warns of the timeout, browsers do not.
# With `scheduleRefresh: false` the next call refreshes a token that has ended.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @badgateway/oauth2-client@3.3.1
cat >count.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { OAuth2Client, OAuth2Fetch } from '@badgateway/oauth2-client'

for (const days of [24, 30]) {
  const seen = []
  const provider = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    seen.push(new URLSearchParams(body).get('grant_type'))
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ access_token: `a${seen.length}`, token_type: 'bearer', expires_in: days * 86_400, refresh_token: `r${seen.length}` }))
  })
  await once(provider.listen(0, '127.0.0.1'), 'listening')
  const server = `http://127.0.0.1:${provider.address().port}/`
  const client = new OAuth2Client({ server, clientId: 'page', tokenEndpoint: '/token' })
  const getNewToken = () => client.authorizationCode.getToken({ code: 'code', redirectUri: 'http://localhost/' })
  await new OAuth2Fetch({ client, getNewToken }).getAccessToken()
  await delay(1000)
  const refreshes = seen.filter((type) => type === 'refresh_token').length
  console.log(`${days} days: ${refreshes > 5 ? 'more than 5' : refreshes} refreshes in a second`)
}
process.exit()
JS
seen=$(node count.mjs 2>/dev/null)
echo "$seen"
[ "$seen" = '24 days: 0 refreshes in a second
30 days: more than 5 refreshes in a second' ]
