#!/bin/sh
# LemonLDAP::NG 2.16.1 (Debian 12), OpenID Connect: a guess says that a logout with a registered post_logout_redirect_uri, which the user
# confirms, leads back to that address, whatever happened before. Yet after a login for which the user was asked for consent in the same
# browser, it leads to the portal's own page for a login. The form of the consent has a field `url`, which the portal keeps in a cookie
# and prefers at the next logout. The user is logged out, but never returns. Where the consent is remembered from before, or switched
# off for the client, the logout returns. Versions 2.21.2 and 2.23.4 do the same.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
portal=liblemonldap-ng-portal-perl
modules='convert-pem crypt-openssl-bignum gd-securityimage image-magick io-string string-random'
recommended=$(for each in $modules; do echo "lib$each-perl"; done)
apt-cache policy $portal | grep -q 'Candidate: 2\.16\.1' || { echo 'It needs the packages of Debian 12.'; exit 1; }
needed=$(apt-get -qq --simulate --no-install-recommends install $portal $recommended | awk '$1 == "Inst" { print $2 }')
apt-get download -q $portal $needed >log 2>&1 || { cat log; exit 1; }
for each in *.deb; do dpkg -x "$each" root; done
export PERL5LIB="$folder/root/usr/share/perl5:$(echo "$folder"/root/usr/lib/*/perl5/5.36)"
export LD_LIBRARY_PATH="$(echo "$folder"/root/usr/lib/*-linux-gnu)"
cat >see.mjs <<'JS'
import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

const free = createServer()
await once(free.listen(0, '127.0.0.1'), 'listening')
const { port } = free.address()
free.close()
const portal = `http://127.0.0.1:${port}/`
const client = 'http://localhost:1'
const folder = process.cwd()
for (const each of ['conf', 'sessions/lock', 'consents/lock']) mkdirSync(each, { recursive: true })
writeFileSync('lemonldap-ng.ini', `[all]
[configuration]
type=File
dirName=${folder}/conf
[portal]
templateDir=${folder}/root/usr/share/lemonldap-ng/portal/templates
languages=en
`)
const storage = (name) => ({ Directory: `${folder}/${name}`, LockDirectory: `${folder}/${name}/lock` })
const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
})
writeFileSync('conf/lmConf-1.json', JSON.stringify({
  cfgNum: 1,
  cfgDate: 1,
  portal,
  domain: '127.0.0.1',
  authentication: 'Demo',
  userDB: 'Same',
  locationRules: { '127.0.0.1': { default: 'accept' } },
  demoExportedVars: { uid: 'uid' },
  globalStorage: 'Apache::Session::File',
  globalStorageOptions: storage('sessions'),
  persistentStorage: 'Apache::Session::File',
  persistentStorageOptions: storage('consents'),
  issuerDBOpenIDConnectActivation: 1,
  oidcServicePrivateKeySig: privateKey,
  oidcServicePublicKeySig: publicKey,
  oidcRPMetaDataExportedVars: { one: {} },
  oidcRPMetaDataOptions: {
    one: {
      oidcRPMetaDataOptionsClientID: 'one',
      oidcRPMetaDataOptionsClientSecret: 'a-secret',
      oidcRPMetaDataOptionsRedirectUris: `${client}/callback`,
      oidcRPMetaDataOptionsPostLogoutRedirectUris: `${client}/goodbye`,
      oidcRPMetaDataOptionsIDTokenSignAlg: 'RS256',
    },
  },
}))
const psgi = 'root/usr/share/lemonldap-ng/portal/htdocs/index.psgi'
const words = ['root/usr/bin/plackup', '--host=127.0.0.1', `--port=${port}`, '--env=production', '--no-default-middleware', psgi]
const server = spawn('perl', words, {
  env: { ...process.env, LLNG_DEFAULTCONFFILE: `${folder}/lemonldap-ng.ini` },
  stdio: 'ignore',
})
const exited = once(server, 'exit')

/** A browser that knows the portal alone. */
const cookies = new Map()
async function go(address, form) {
  const options = { redirect: 'manual', headers: { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') } }
  const response = await fetch(address, form ? { ...options, method: 'POST', body: new URLSearchParams(form) } : options)
  for (const line of response.headers.getSetCookie()) {
    const [pair] = line.split(';')
    const at = pair.indexOf('=')
    if (/expires=.*2015/.test(line)) cookies.delete(pair.slice(0, at))
    else cookies.set(pair.slice(0, at), pair.slice(at + 1))
  }
  const to = response.headers.get('location')
  if (to === null) return { address, body: await response.text() }
  return to.startsWith(portal) ? go(to) : { address: to, body: '' }
}
const hidden = ({ body }) =>
  Object.fromEntries([...body.matchAll(/<input[^>]*type="hidden"[^>]*>/g)].map(([input]) => {
    const of = (name) => new RegExp(`\\s${name}="([^"]*)"`).exec(input)?.[1] ?? ''
    return [of('name'), of('value')]
  }))
const path = ({ address }) => address.replace(portal, 'the portal: /').replace(/\?.*/, '')

for (let tries = 0; (await fetch(portal).catch(() => undefined)) === undefined; tries++) {
  if (tries === 100) throw new Error('the portal does not listen')
  await delay(100)
}
const request = { client_id: 'one', response_type: 'code', scope: 'openid', redirect_uri: `${client}/callback`, state: 'x' }
for (const _ of ['first', 'second']) {
  let page = await go(`${portal}oauth2/authorize?${new URLSearchParams(request)}`)
  page = await go(page.address, { ...hidden(page), user: 'dwho', password: 'dwho' })
  const isAsked = 'confirm' in hidden(page)
  if (isAsked) page = await go(page.address, hidden(page))
  console.log(`a login ${isAsked ? 'with' : 'without'} a consent ends at ${path(page)}`)
  page = await go(`${portal}oauth2/logout?${new URLSearchParams({ post_logout_redirect_uri: `${client}/goodbye` })}`)
  page = await go(page.address, hidden(page))
  console.log(`its logout ends at ${path(page)}`)
}
server.kill()
await exited
process.exit()
JS
seen=$(node see.mjs)
printf "%s\n" "$seen"
[ "$seen" = 'a login with a consent ends at http://localhost:1/callback
its logout ends at the portal: /oauth2
a login without a consent ends at http://localhost:1/callback
its logout ends at http://localhost:1/goodbye' ]
