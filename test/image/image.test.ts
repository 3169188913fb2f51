import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { test, type Test } from 'tap'
import program from '../../package.json' with { type: 'json' }
import { ALONE } from '../support/server/settings.ts'
import { untilSlow as until } from '../support/time/until.ts'
import { isAllowed } from '../support/supply/licences.ts'
import { Container, docker, execute, NAME, ROOT } from './docker.ts'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'

const LIVE = 'http://127.0.0.1:9464/livez'
const READY = 'http://127.0.0.1:9464/readyz'
/** The compile cache of the server takes 6.5 MB. */
const MAX_COMPILED_KB = 9000

const SOURCE = 'https://git.example.com/trading-bff'
const REVISION = '0123456789abcdef0123456789abcdef01234567'
/** Prints the name and the version of each package in the image. */
const HELD = `cd /app/node_modules && find . -name package.json | xargs node -p '
  process.argv.slice(1).map((file) => require(path.resolve(file)))
    .flatMap(({ name, version }) => name && version ? name + " " + version : []).join("\\n")'`

/** What the tests read of a bill of materials. */
interface Sbom {
  readonly components: readonly {
    readonly name: string
    readonly version: string
    readonly licenses: readonly { readonly license?: { readonly id?: string }; readonly expression?: string }[]
  }[]
}

async function container(t: Test, settings: Record<string, string>, command?: string[]): Promise<Container> {
  const started = await Container.start(NAME, settings, command)
  t.teardown(() => started.remove())
  return started
}

await test('The Dockerfile builds with host networking while its ports are taken on the host', async (t) => {
  for (const port of [3000, 9464]) {
    const taken = createServer().listen(port)
    await Promise.race([once(taken, 'listening'), once(taken, 'error').catch(() => undefined)])
    t.teardown(() => taken.close())
  }
  const args = ['--build-arg', `SOURCE=${SOURCE}`, '--build-arg', `REVISION=${REVISION}`]
  // A stand-in for the base image has this tag and no digest.
  await docker('build', '--network', 'host', '--build-arg', 'NODE_IMAGE=node:24-slim', ...args, '--tag', NAME, ROOT)
})

await test('The labels of the image say which commit it was built from, and deploy/sbom.sh what it holds', async (t) => {
  const labels = await docker('inspect', '--format', '{{json .Config.Labels}}', NAME)
  t.match(JSON.parse(labels), {
    'org.opencontainers.image.source': SOURCE,
    'org.opencontainers.image.revision': REVISION,
    'org.opencontainers.image.version': program.version,
    'org.opencontainers.image.licenses': program.license,
  })
  const { components } = JSON.parse(await execute(`${ROOT}/deploy/sbom.sh`, [NAME])) as Sbom
  const listed = new Set(components.map(({ name, version }) => `${name} ${version}`))
  for (const [name, version] of Object.entries(program.dependencies)) t.ok(listed.has(`${name} ${version}`), name)
  const held = new Set(await linesOf(HELD))
  t.same(listed, held, 'every package of the image is listed, and no other')
  const ofRelease = JSON.parse(await execute(`${ROOT}/deploy/sbom.sh`, [])) as Sbom
  t.same(
    new Set(ofRelease.components.map(({ name, version }) => `${name} ${version}`)),
    held,
    'the lock file says the same',
  )
  for (const { name, licenses } of components) {
    for (const { license, expression } of licenses) t.ok(isAllowed(expression ?? license?.id), name)
  }
})

await test('The image is healthy when it runs read-only, as an unprivileged user and without capabilities', async (t) => {
  const server = await container(t, ALONE)
  await until(async () => (await server.statusOf(READY)) === 200)
  t.equal(await server.statusOf('http://127.0.0.1:3000/auth/session'), 200)
  t.equal(await server.statusOf('http://127.0.0.1:3000/client.js'), 200)
  const metrics = await server.evaluate(`console.log(await (await fetch('http://127.0.0.1:9464/metrics')).text())`)
  t.match(metrics, `revision="${REVISION}"`)
  t.same(await linesOf('find /app ! -readable'), [''], 'its user can read every file')
  const toolbox = await readFile(`${ROOT}/deploy/toolbox.sh`, 'utf8')
  t.equal(
    await docker('run', '--rm', NAME, 'cat', 'deploy/toolbox.sh'),
    toolbox,
    'operators have the commands of the runbook',
  )
  const facts = JSON.parse(
    await server.evaluate(`
      import { readFileSync, writeFileSync } from 'node:fs'
      const failure = (path) => { try { writeFileSync(path, '') } catch ({ code }) { return code } }
      const status = readFileSync('/proc/1/status', 'utf8')
      const value = (name) => status.match(new RegExp('^' + name + ':\\\\s*(.*)$', 'm'))[1].split('\\t')[0]
      const written = ['/x', '/tmp/x', '/app/x', '/app/compiled/x'].map(failure)
      console.log(JSON.stringify({ uid: value('Uid'), gid: value('Gid'), caps: value('CapEff'), bound: value('CapBnd'), written }))`),
  ) as unknown
  const none = '0000000000000000'
  const written = ['EROFS', 'EROFS', 'EROFS', 'EROFS']
  t.same(facts, { uid: '1000', gid: '1000', caps: none, bound: none, written })
  await until(async () => (await server.inspect('{{.State.Health.Status}}')) === 'healthy')
  await docker('stop', server.id)
  t.equal(await server.exited(), 0)
})

/** Runs a shell command in the image with a writable compile cache. @returns the sorted lines of its output */
async function linesOf(command: string): Promise<string[]> {
  // A health check would write into the cache as well.
  const options = ['--rm', '--no-healthcheck', '--tmpfs', '/tmp', '--env', 'NODE_COMPILE_CACHE=/tmp/compiled', NAME]
  return (await docker('run', ...options, 'sh', '-c', command)).trim().split('\n').toSorted()
}

await test('The image contains exactly the compile cache of a start', async (t) => {
  const names = "-type f -printf '%f\\n'"
  const kept = await linesOf(`find /app/compiled ${names}`)
  const [, start = ''] = /^CMD (\[.*\])$/m.exec(await readFile(`${ROOT}/Dockerfile`, 'utf8')) ?? []
  const command = (JSON.parse(start) as string[]).join(' ')
  t.same(kept, await linesOf(`${command} --warm-up && find /tmp/compiled ${names}`), `${kept.length} files`)
  const [size = ''] = await linesOf('du -s /app/compiled')
  t.ok(Number.parseInt(size, 10) < MAX_COMPILED_KB, size)
})

/** Sends a signal twice, the second time after the server has reacted to the first. */
function signalTwice(signal: string) {
  return async (t: Test): Promise<Container> => {
    const server = await container(t, { ...ALONE, DRAIN_SECONDS: '120', DRAIN_WAIT_SECONDS: '60' })
    await until(async () => (await server.statusOf(READY)) === 200)
    await docker('kill', '--signal', signal, server.id)
    await until(async () => (await server.statusOf(READY)) === 503)
    await docker('kill', '--signal', signal, server.id)
    return server
  }
}

/** Starts a container that exits with the exit code. */
const EXITS: Readonly<Record<string, (t: Test) => Promise<Container>>> = {
  '0': async (t) => {
    const server = await container(t, ALONE)
    await until(async () => (await server.statusOf(LIVE)) === 200)
    await docker('stop', server.id)
    return server
  },
  '1': (t) => {
    const fault = `data:text/javascript,setTimeout(()=>{throw(new(Error)('planted'))},2000)`
    return container(t, { ...ALONE, NODE_OPTIONS: `--import=${fault}` })
  },
  '64': (t) => container(t, ALONE, ['node', 'src/main.ts', '--unknown']),
  '69': (t) => container(t, ALONE, ['node', 'src/main.ts', '--check']),
  // The container cannot listen on an address that it does not have.
  '71': (t) => container(t, { ...ALONE, HOST: '192.0.2.1' }),
  '78': (t) => container(t, {}),
  '129': signalTwice('HUP'),
  '130': signalTwice('INT'),
  '143': signalTwice('TERM'),
}

/** Lines of the log are lost only where nothing reads it: test/ops/hanging-log tries that. */
const TRIED_ELSEWHERE = '74'

await test('The image exits with the exit codes that docs/operating/ documents', async (t) => {
  const [table = ''] = /\| Exit code[^]*?\n\n/.exec(OPERATING_GUIDE) ?? []
  const documented = [...table.matchAll(/^\| ([\d, ]+) \|/gm)].flatMap(([, codes = '']) => codes.split(', '))
  const tried = documented.filter((code) => code !== TRIED_ELSEWHERE)
  t.same(tried.toSorted(), Object.keys(EXITS).toSorted(), 'every exit code is documented and tested')
  for (const code of tried) {
    const server = await EXITS[code]?.(t)
    t.equal(await server?.exited(), Number(code))
  }
})
