#!/bin/sh
# @openid/appauth 1.4.0 (TokenResponse.isValid(), which a page asks before a call whether it has to refresh its token): a guess says that
# a token which has just come is valid, however short it lives. Yet isValid() takes ten minutes off by default, also from a token that
# lives for less: one of 5 minutes is never valid. A page then refreshes before every call. That works, until a provider limits the calls
# of its token endpoint, or several calls at once use one refresh token that may be used once. A test with tokens of an hour shows
# nothing. isValid(-30) takes half a minute off instead, and a buffer above zero makes a token valid after its end.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @openid/appauth@1.4.0 esbuild@0.28.2
cat >valid.js <<'JS'
import { TokenResponse } from '@openid/appauth'
for (const seconds of [300, 600, 601, 3600]) {
  const token = new TokenResponse({ access_token: 'token', expires_in: `${seconds}` })
  console.log(`${seconds} s: ${token.isValid()}, with -30 ${token.isValid(-30)}, with 0 ${token.isValid(0)}`)
}
JS
node_modules/.bin/esbuild valid.js --bundle --format=esm --outfile=valid.mjs --log-level=warning
seen=$(node valid.mjs)
echo "$seen"
[ "$seen" = '300 s: false, with -30 true, with 0 true
600 s: false, with -30 true, with 0 true
601 s: true, with -30 true, with 0 true
3600 s: true, with -30 true, with 0 true' ]
