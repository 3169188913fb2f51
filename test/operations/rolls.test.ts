import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { control, controlsWorld, pause } from '../support/controls/controls-world.ts'
import { projectFile } from '../support/deployment/files.ts'
import { exactly } from '../support/exactly.ts'
import { OPS_TOKEN } from '../support/login/identity.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/**
 * Stand-ins for what the scripts run. Node runs here instead of in a container, time passes only in `sleep` and where a listener
 * hangs, and `done` has the commands that change something.
 */
const STAND_INS = {
  docker: `
interrupt() { [ "$INTERRUPTED" != "$1" ] || [ -e "$HERE/interrupted" ] || { touch "$HERE/interrupted"; kill "$PPID"; }; }
case "$1 $2" in
  'compose ps') case $* in *' --all '*) cat "$HERE/instances" "$HERE/stopped" ;; *) cat "$HERE/instances" ;; esac ;;
  'compose config')
    echo '{"services":{"app":{"image":"trading-bff:next","environment":{"OPS_TOKEN":"","OPS_TOKEN_FILE":"'"$TOKEN_FILE"'"}}}}' ;;
  'compose up') echo "$@" >>"$HERE/done"; echo new >>"$HERE/instances" ;;
  'exec -i') shift 3; exec "$@" ;;
  'exec new') [ -z "$HANGS" ] || { sleep 3; exit 1; }; shift 2; exec "$@" ;;
  'exec old') shift 2; exec "$@" ;;
  'image inspect') [ "$3" != --format ] || echo "$VERSION" ;;
  'inspect --format') echo 0 ;;
  'logs --tail') echo 'its last line' ;;
  stop*|rm*) echo "$@" >>"$HERE/done"; interrupt "$1" ;;
  *) echo "docker $*: no stand-in" >&2; exit 1 ;;
esac`,
  kubectl: `
echo "\${*%% -- *}" >>"$HERE/asked"
case "$*" in
  exec*' -- '*) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
  *--dry-run=client) [ -z "$IMAGE" ] || sed "s|IMAGE|$IMAGE|; s|NEXT_TOKEN|$NEXT_TOKEN|" "$HERE/template" ;;
  'rollout undo '*) echo "$@" >>"$HERE/done" ;;
  'get '*'configmap/trading-bff-5d8 --output='*) printf %s "$TOKEN_FILE" ;;
esac`,
  date: `cat "$HERE/clock"`,
  sleep: `echo $(($(cat "$HERE/clock") + $1)) >"$HERE/clock"
[ "$INTERRUPTED" != sleep ] || [ -e "$HERE/interrupted" ] || { touch "$HERE/interrupted"; kill "$PPID"; }`,
}

/** What `kubectl rollout undo --dry-run=client` prints of a revision. */
const TEMPLATE = `deployment.apps/trading-bff Pod Template:
  Labels:\tapp.kubernetes.io/name=trading-bff
  Containers:
   proxy:
    Image:\tenvoy:1.30.0
    Port:\t<none>
   trading-bff:
    Image:\tIMAGE
    Port:\t3000/TCP
    Environment Variables from:
      trading-bff-5d8\tConfigMap\tOptional: false
    Environment:
      OPS_HOST:\t0.0.0.0
      NEXT_TOKEN
  Volumes:
   secrets:
    Type:\tSecret
 (dry run)
`

/** Runs a command of a shell in the project, with the stand-ins. */
async function run(t: Test, command: string, environment: Record<string, string | number>, files: object = {}) {
  const here = t.testdir({
    ...Object.fromEntries(Object.entries(STAND_INS).map(([name, body]) => [name, `#!/bin/sh\n${body}\n`])),
    instances: 'old\n',
    stopped: '',
    clock: '1000\n',
    template: TEMPLATE,
    ...files,
  })
  for (const name of Object.keys(STAND_INS)) chmodSync(join(here, name), 0o755)
  const shell = spawn('sh', ['-c', command], {
    cwd: ROOT,
    env: {
      PATH: `${here}:${process.env['PATH']}`,
      HERE: here,
      OPS_HOST: '127.0.0.1',
      OPS_TOKEN,
      // The settings of the next instances.
      TOKEN_FILE: '/run/secrets/ops-token',
      NEXT_TOKEN: '',
      INTERRUPTED: '',
      ...Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)])),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, [code]] = await Promise.all([
    text(shell.stdout),
    text(shell.stderr),
    once(shell, 'exit') as Promise<[number | null]>,
  ])
  const lines = (name: string): string[] =>
    existsSync(join(here, name)) ? readFileSync(join(here, name), 'utf8').trim().split('\n') : []
  return { code, stdout, stderr, done: lines('done'), asked: lines('asked'), seconds: Number(lines('clock')[0]) - 1000 }
}

const portOf = (url: string): string => new URL(url).port

/** An operator's server, and a port on which nobody listens. */
async function operated(t: Test) {
  const { server } = await controlsWorld(t, { instances: 1, redis: false })
  const { promise: closed, resolve } = Promise.withResolvers<number>()
  const nobody = createServer().listen(0, '127.0.0.1', () => {
    const { port } = nobody.address() as AddressInfo
    nobody.close(() => resolve(port))
  })
  return { server, port: portOf(server.opsUrl), silent: await closed }
}

const ROLLED = ['compose up --detach --no-deps --no-recreate --scale app=2 app', 'stop -t 30 old', 'rm old']

await test('deploy/roll.sh starts and stops nothing when an image that obeys no pause would void one', async (t) => {
  const { server, port, silent } = await operated(t)
  const roll = (version: string, opsPort: string | number = port) =>
    run(t, 'deploy/roll.sh', { VERSION: version, OPS_PORT: opsPort, HANGS: '' })
  t.match(await roll('0.2.0'), { code: 0, done: exactly(...ROLLED) }, 'nothing is paused')
  t.match(await roll('0.2.0', silent), { code: 1, done: exactly(), stderr: /0\.2\.0, .* does not say what is paused/ })
  await pause(server, { subject: '4711' })
  t.match(await roll(''), { code: 1, done: exactly(), stderr: /version unknown, .* orders are paused: .*4711/ })
  await control(server, 'DELETE', '/orders?subject=4711')
  t.match(await roll(''), { code: 0, done: exactly(...ROLLED) }, 'what was lifted is not paused')
  await pause(server)
  for (const version of ['0.2.0', '0.2.99', 'main']) {
    t.match(await roll(version), { code: 1, done: exactly(), stderr: /obeys no pause, and orders are paused/ }, version)
  }
  for (const version of ['0.3.0', '0.10.0', '1.0.0']) {
    t.match(await roll(version), { code: 0, done: exactly(...ROLLED) }, `${version} obeys pauses`)
  }
})

await test('deploy/roll.sh starts and stops nothing when settings without OPS_TOKEN would void a pause', async (t) => {
  const { server, port, silent } = await operated(t)
  const roll = (settings: Record<string, string | number>) =>
    run(t, 'deploy/roll.sh', { VERSION: '1.0.0', OPS_PORT: port, HANGS: '', ...settings })
  t.match(await roll({ TOKEN_FILE: '' }), { code: 0, done: exactly(...ROLLED) }, 'nothing is paused')
  await pause(server, { subject: '4711' })
  const refused = { code: 1, done: exactly(), stderr: /without OPS_TOKEN, .* orders are paused: .*4711/ }
  t.match(await roll({ TOKEN_FILE: '' }), refused)
  t.match(await roll({}), { code: 0, done: exactly(...ROLLED) }, 'with the token')
  const hung = await roll({ TOKEN_FILE: '', OPS_PORT: silent })
  t.equal(hung.done[0], ROLLED[0], 'an instance that answers nobody may be replaced')
})

await test('deploy/roll.sh removes a new instance whose listener hangs after a minute, and leaves the old one', async (t) => {
  const { code, done, stderr, seconds } = await run(t, 'deploy/roll.sh', {
    VERSION: '1.0.0',
    OPS_PORT: 0,
    HANGS: 'yes',
  })
  t.equal(code, 1)
  t.same(done, [ROLLED[0], 'rm --force new'])
  t.match(stderr, /its last line\nthe new instance is not ready: it does not answer/)
  t.ok(seconds >= 60 && seconds <= 64, `after ${seconds} s`)
})

await test('deploy/roll.sh that is interrupted leaves as many instances as there were, and no more', async (t) => {
  const { port } = await operated(t)
  const environment = { VERSION: '1.0.0', OPS_PORT: port, HANGS: '' }
  for (const INTERRUPTED of ['sleep', 'stop']) {
    const ended = await run(t, 'deploy/roll.sh', { ...environment, INTERRUPTED })
    t.equal(ended.code, 143, INTERRUPTED)
    t.same(
      [ended.done[0], ...ended.done.slice(-2)],
      ROLLED,
      `${INTERRUPTED}: the old one goes, since the new one serves`,
    )
  }
})

await test('deploy/roll.sh does not start an instance again that somebody has stopped', async (t) => {
  const { port } = await operated(t)
  const environment = { VERSION: '1.0.0', OPS_PORT: port, HANGS: '' }
  const ended = await run(t, 'deploy/roll.sh', environment, { stopped: 'other\n' })
  t.match(ended, { code: 1, done: exactly(), stderr: /not all instances run: .*docker compose rm app/ })
})

await test('deploy/roll.sh does not wait for an answer that comes byte by byte', async (t) => {
  const server = createServer((_request, response) => {
    const drops = setInterval(() => response.write(' '), 500)
    response.on('close', () => clearInterval(drops))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const ended = await run(t, 'deploy/roll.sh', { VERSION: '0.2.0', OPS_PORT: port, HANGS: '' })
  t.match(ended, { code: 1, done: exactly(), stderr: /does not say what is paused/ })
})

/** The documented ways back in Kubernetes. */
const WAYS_BACK = ['docs/operating/runbook.md', 'deploy/kubernetes/README.md'].flatMap((name) =>
  [...projectFile(name).matchAll(/^(?:kubectl .*rollout undo|deploy\/undo\.sh) .*$/gm)].map(([command]) => command),
)

await test('the documented way back in Kubernetes stops while a pause would be void, and else is that of kubectl', async (t) => {
  const { server, port, silent } = await operated(t)
  t.equal(WAYS_BACK.length, 2)
  const stops = async (command: string, image: string, stderr: RegExp, opsPort: string | number = port) =>
    t.match(await run(t, command, { IMAGE: image, OPS_PORT: opsPort }), { code: 1, done: exactly(), stderr }, image)
  const goes = async (command: string, image: string) => {
    const [, revision = '', deployment = ''] = /undo\.sh (--to-revision=\d+)? ?(.*)/.exec(command) ?? []
    const undone = `rollout undo ${deployment} ${revision}`.trim()
    const { code, done, asked } = await run(t, command, { IMAGE: image, OPS_PORT: port })
    t.same([code, done], [0, [undone]], image)
    const settings = asked.filter((each) => each.startsWith('get '))
    const question = `exec ${deployment} --container=trading-bff`
    t.same(asked, [`${undone} --dry-run=client`, question, ...settings, undone], image)
  }
  for (const command of WAYS_BACK) {
    await goes(command, 'registry.example:5000/trading-bff:0.2.0')
    await stops(command, 'trading-bff:0.2.0', /does not say what is paused/, silent)
  }
  await pause(server, { subject: '4711' })
  for (const command of WAYS_BACK) {
    for (const image of [
      'registry.example:5000/trading-bff:0.2.0',
      'registry.example:5000/team-1.0/trading-bff',
      'trading-bff:main',
      'trading-bff@sha256:45b23dee08af5e43a7fea6c4cf9c25ccf269ee113168c19722f87876677c5cb2',
    ]) {
      await stops(command, image, /obeys no pause, and orders are paused: .*4711/)
    }
    await goes(command, 'registry.example:5000/trading-bff:0.3.0')
    await goes(command, 'trading-bff:v1.0.0@sha256:45b23dee08af5e43a7fea6c4cf9c25ccf269ee113168c19722f87876677c5cb2')
  }
  const back = (settings: Record<string, string>) =>
    run(t, 'deploy/undo.sh -n production deployment/trading-bff', {
      IMAGE: 'trading-bff:1.0.0',
      OPS_PORT: port,
      ...settings,
    })
  const { code, done, stderr, asked } = await back({ TOKEN_FILE: '' })
  t.same([code, done], [1, []])
  t.match(stderr, /without OPS_TOKEN, .* orders are paused: .*4711/)
  t.match(asked.at(-1), /^get -n production configmap\/trading-bff-5d8 /)
  for (const [name, token, mayGo] of [
    ['OPS_TOKEN_FILE', '/run/secrets/ops-token', true],
    ['OPS_TOKEN', "<set to the key 'ops-token' in secret 'trading-bff'>  Optional: false", true],
    ['OPS_TOKEN', '', false],
  ] as const) {
    const { code } = await back({ TOKEN_FILE: '', NEXT_TOKEN: `${name}:\t${token}` })
    t.equal(code, mayGo ? 0 : 1, `${name} ${token}`)
  }
  await control(server, 'DELETE', '/orders?subject=4711')
  await goes('deploy/undo.sh --to-revision=3 -n production deployment/trading-bff', 'trading-bff:0.2.0')
  await stops('deploy/undo.sh deployment/trading-bff', '', /no revision with a container trading-bff/)
})
