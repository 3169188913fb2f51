#!/bin/sh
# @fastify/static 10.1.11, express.static of Express 5.3.0, sirv 3.0.2 and nginx 1.22.1 (Debian 12): a guess says that an index.html
# with `no-cache`, which a browser validates at every visit, is always the newest, since its ETag changes with the file. Yet these four
# make the ETag of the time and the size of the file. npm gives all files of all packages one time, in October 1985, as tools for
# reproducible builds do, and the index.html of a bundler differs from the last one by a hash, whose length stays. So the new page has
# the ETag of the old one: the server answers 304, and the browser asks for the bundles of the old release, which the server no longer
# has. Only users who have been there before see it, and no test with an empty cache does. Each release needs a time of its own for its
# index.html.
set -eu
nginx -v 2>&1 | grep -q '/1\.22\.1$' || { echo 'It needs nginx 1.22.1 on the PATH.'; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir page
for release in 4f1c09a7 71e40926; do
  echo "<script src=\"/assets/index-$release.js\"></script>" >page/index.html
  echo '{"name":"page","version":"1.0.0"}' >page/package.json
  (cd page && npm pack --silent >/dev/null)
  mkdir "$release"
  tar -xzf page/page-1.0.0.tgz -C "$release"
  touch page/index.html
done
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts fastify@5.12.8 @fastify/static@10.1.11 express@5.3.0 sirv@3.0.2
cat >visit.mjs <<'JS'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, get } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import files from '@fastify/static'
import express from 'express'
import fastify from 'fastify'
import sirv from 'sirv'

async function listening(server) {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { port: server.address().port, stop: () => server.close() }
}

const servers = {
  async '@fastify/static'(root) {
    const app = fastify().register(files, { root, cacheControl: false, setHeaders: (reply) => reply.header('cache-control', 'no-cache') })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: app.server.address().port, stop: () => app.close() }
  },
  'express.static': (root) =>
    listening(createServer(express().use(express.static(root, { setHeaders: (response) => response.set('cache-control', 'no-cache') })))),
  sirv: (root) => listening(createServer(sirv(root, { etag: true }))),
  async nginx(root) {
    const { port, stop } = await listening(createServer())
    stop()
    const folder = process.cwd()
    writeFileSync('nginx.conf', `daemon off;
${process.getuid() === 0 ? 'user root;' : ''}
pid ${folder}/nginx.pid;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/bodies;
  proxy_temp_path ${folder}/proxied;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server { listen 127.0.0.1:${port}; root ${root}; add_header cache-control no-cache; }
}`)
    const nginx = spawn('nginx', ['-e', 'stderr', '-c', `${folder}/nginx.conf`], { stdio: 'ignore' })
    const exited = once(nginx, 'exit')
    for (let tries = 0; !(await visit(port).catch(() => undefined)); tries++) {
      if (tries === 50) throw new Error('nginx does not listen')
      await delay(100)
    }
    return { port, stop: () => exited.then(nginx.kill()) }
  },
}

/** As a browser visits a page, again if it has an ETag and a time of it. */
async function visit(port, headers = {}) {
  const [response] = await once(get({ port, host: '127.0.0.1', path: '/index.html', headers, agent: false }), 'response')
  const { etag, 'last-modified': modified } = response.headers
  return { status: response.statusCode, body: await text(response), headers: { 'if-none-match': etag, 'if-modified-since': modified } }
}

for (const [name, start] of Object.entries(servers)) {
  const old = await start(`${process.cwd()}/4f1c09a7/package`)
  const before = await visit(old.port)
  await old.stop()
  const now = await start(`${process.cwd()}/71e40926/package`)
  const again = await visit(now.port, before.headers)
  const { body } = await visit(now.port)
  await now.stop()
  console.log(`${name}: ${body === before.body ? 'the same page' : 'another page'}, ${again.status}`)
}
JS
seen=$(node visit.mjs)
echo "$seen"
[ "$seen" = '@fastify/static: another page, 304
express.static: another page, 304
sirv: another page, 304
nginx: another page, 304' ]
