import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import {
  bytesOf,
  composeConfig,
  composeFile,
  configOf,
  kubernetesFile,
  makeSecrets,
  msOf,
  projectFile,
  settingNames,
  type ComposeService,
} from '../support/deployment/files.ts'
import { serverProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'

function sharedNetworks(one: ComposeService, other: ComposeService): unknown[] {
  const others = new Set<unknown>([other.networks].flat())
  return [one.networks].flat().filter((name) => others.has(name))
}

const modeOf = (path: string): number => statSync(path).mode & 0o777

await test('make-secrets.sh makes files that only their owner finds, and keeps files that exist', (t) => {
  const dir = makeSecrets(join(t.testdir({}), 'secrets'))
  const files = ['session-secrets', 'redis-password', 'redis-url', 'certificate.pem']
  const contents = (): string[] => files.map((file) => readFileSync(join(dir, file), 'utf8'))
  const first = contents()
  t.equal(new Set(first).size, files.length)
  t.match(first[3], /BEGIN PRIVATE KEY[^]*BEGIN CERTIFICATE/)
  t.equal(modeOf(dir), 0o700)
  const [log, data] = [join(dir, 'redis.log'), join(dir, 'appendonlydir')]
  writeFileSync(log, '', { mode: 0o600 })
  mkdirSync(data, { mode: 0o700 })
  chmodSync(dir, 0o755)
  makeSecrets(dir)
  t.equal(modeOf(dir), 0o700, 'somebody may have made it for a certificate')
  t.same(contents(), first)
  for (const file of files) t.equal(modeOf(join(dir, file)), 0o444)
  t.same([modeOf(log), modeOf(data)], [0o600, 0o700], 'what Redis has there can still be written')
  t.end()
})

await test('docker-compose.yml names only settings and secrets that exist', (t) => {
  const { services, secrets } = composeFile()
  for (const name of Object.keys(services.app.environment ?? {})) t.ok(settingNames.has(name), `${name} is a setting`)
  for (const service of Object.values(services)) {
    for (const name of service.secrets ?? []) t.ok(secrets[name], `the secret ${name} is declared`)
  }
  const made = makeSecrets(t.testdir({}))
  for (const [name, { file }] of Object.entries(secrets)) {
    t.ok(statSync(join(made, file.replace('deploy/secrets/', ''))).isFile(), `make-secrets.sh makes ${name}`)
  }
  const { redisUrl, oauth } = composeConfig(made)
  const password = readFileSync(join(made, 'redis-password'), 'utf8').trim()
  t.equal(redisUrl?.current, `redis://:${password}@redis:6379`, 'instances have the password that Redis takes')
  const { networks, profiles = [] } = services.sandbox
  t.ok(profiles.length > 0, 'the sandbox starts only with a profile')
  const aliases = networks !== undefined && 'edge' in networks ? networks.edge.aliases : []
  t.ok(aliases.includes(new URL(oauth.authUrl).hostname), 'instances find the provider of the sandbox')
  t.end()
})

await test('docker-compose.yml bounds the memory and the logs of every service', (t) => {
  const { services } = composeFile()
  for (const [name, { deploy, logging }] of Object.entries(services)) {
    t.ok(bytesOf(deploy.resources.limits.memory) > 0, `the memory of ${name} is bounded`)
    const { 'max-size': size = '', 'max-file': files = '' } = logging.options
    t.ok(bytesOf(size) * Number(files) > 0, `the logs of ${name} are bounded`)
  }
  const [, maxMemory = ''] = /--maxmemory (\S+)/.exec(projectFile('docker-compose.yml')) ?? []
  t.ok(
    bytesOf(services.redis.deploy.resources.limits.memory) > 2 * bytesOf(maxMemory),
    'Redis may double its memory while it rewrites its append-only file',
  )
  t.equal(
    bytesOf(services.app.deploy.resources.limits.memory),
    bytesOf(kubernetesFile().container.resources.limits.memory),
    'an instance has the same memory under Kubernetes',
  )
  t.end()
})

await test('an instance refuses sockets before they fill the memory that Compose and Kubernetes give it', (t) => {
  const sizing = projectFile('docs/operating/sizing.md')
  const figure = (row: string): number =>
    Number(new RegExp(`^\\| ${row}.*\\| (\\d+) [KM]B \\|$`, 'm').exec(sizing)?.[1])
  const socketsOfUser = ['a trading socket', 'a public socket on the shared feed', 'a session socket'].map(figure)
  const perSocket = (1000 * socketsOfUser.reduce((total, each) => total + each)) / socketsOfUser.length
  const { container, environment } = kubernetesFile()
  const limit = bytesOf(container.resources.limits.memory)
  const secrets = makeSecrets(t.testdir({}))
  for (const { relay } of [composeConfig(secrets), configOf(environment, secrets)]) {
    const most = figure('a busy process without sockets') * 1e6 + (1.25 * limit) / 4 + relay.maxRelays * perSocket
    t.ok(most <= 0.8 * limit, `MAX_RELAYS=${relay.maxRelays} may take ${Math.round(most / 1e6)} MB`)
  }
  t.end()
})

await test('docker-compose.yml lets browsers reach the balancer alone', (t) => {
  const { app, balancer, redis } = composeFile().services
  t.notOk(app.ports, 'the host exposes no instance')
  t.notOk(redis.ports, 'the host does not expose Redis')
  t.equal(sharedNetworks(balancer, app).length, 1, 'the balancer reaches the instances')
  t.equal(sharedNetworks(app, redis).length, 1, 'the instances reach Redis')
  t.same(sharedNetworks(balancer, redis), [], 'the balancer does not reach Redis')
  t.end()
})

await test('an instance drains before compose kills it, and after the balancer has noticed', (t) => {
  const { app } = composeFile().services
  const config = composeConfig(makeSecrets(t.testdir({})))
  t.ok(msOf(app.stop_grace_period ?? '') > config.drainMs, 'stop_grace_period exceeds DRAIN_SECONDS')
  const haproxy = projectFile('deploy/haproxy.cfg')
  const checks = [...haproxy.matchAll(/check port (\d+) inter (\d+s) fall (\d+)/g)]
  t.ok(checks.length > 0)
  for (const [, port, inter = '', fall] of checks) {
    t.equal(Number(port), config.listen.opsPort, 'the balancer checks the ops port')
    t.ok(config.drainWaitMs > msOf(inter) * Number(fall), 'DRAIN_WAIT_SECONDS exceeds inter × fall')
  }
  const templates = [...haproxy.matchAll(/server-template app (\d+) app:(\d+)/g)]
  t.ok(templates.length > 0)
  for (const [, count, port] of templates) {
    t.equal(Number(port), config.listen.port, 'the balancer sends requests to the public port')
    t.ok(Number(count) > (app.deploy.replicas ?? 1), 'the balancer has room for one instance more')
  }
  t.end()
})

await test('the balancer waits longer than an instance may be silent', (t) => {
  const { upstream, http } = composeConfig(makeSecrets(t.testdir({})))
  const haproxy = projectFile('deploy/haproxy.cfg')
  const timeouts = [...haproxy.matchAll(/^  timeout server (\S+)$/gm)].map(([, value = '']) => msOf(value))
  const [instances = 0, orders = 0] = timeouts
  t.ok(instances > 2 * (upstream.connectMs + upstream.headersMs), 'a GET is sent upstream up to twice')
  t.ok(instances > upstream.bodyMs, 'a response may pause')
  t.ok(orders > instances, 'the outer hop of an order outlives the inner one')
  const keepAlive = msOf(/^  timeout http-keep-alive (\S+)$/m.exec(haproxy)?.[1] ?? '')
  t.ok(http.connectionIdleMs > keepAlive, 'an instance does not close a connection that the balancer reuses')
  t.end()
})

await test('the deployments are hardened alike, and no part of them is less hardened', (t) => {
  const { app, balancer, redis } = composeFile().services
  const { pod, container } = kubernetesFile()
  const { securityContext } = container
  const ofPod = {
    hasReadOnlyRoot: securityContext.readOnlyRootFilesystem,
    dropsCapabilities: securityContext.capabilities.drop.includes('ALL'),
    gainsNoPrivileges: !securityContext.allowPrivilegeEscalation,
  }
  for (const service of [app, balancer, redis]) {
    const ofService = {
      hasReadOnlyRoot: service.read_only === true,
      dropsCapabilities: service.cap_drop?.includes('ALL') === true,
      gainsNoPrivileges: service.security_opt?.includes('no-new-privileges:true') === true,
    }
    t.same(ofService, ofPod)
  }
  t.ok(Object.values(ofPod).every(Boolean))
  const [, user] = /^USER (\d+):\d+$/m.exec(projectFile('Dockerfile')) ?? []
  t.equal(pod.securityContext.runAsUser, Number(user), 'the pod runs as the user of the image')
  t.ok(Number(user) > 0 && pod.securityContext.runAsNonRoot)
  t.end()
})

await test('haproxy takes its configuration as it is', (t) => {
  const dir = makeSecrets(join(t.testdir({}), 'secrets'))
  const file = join(dir, 'haproxy.cfg')
  writeFileSync(
    file,
    projectFile('deploy/haproxy.cfg').replace('/run/secrets/certificate', join(dir, 'certificate.pem')),
  )
  const env = { PATH: `${process.env['PATH']}:/usr/sbin` }
  const { status, stderr } = spawnSync('haproxy', ['-c', '-f', file], { env })
  t.equal(status, 0, String(stderr))
  t.notMatch(String(stderr), /WARNING/)
  t.end()
})

await test('the image has the program and nothing else', (t) => {
  const kept = projectFile('.dockerignore')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1))
  const dockerfile = projectFile('Dockerfile')
  const lastStage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
  const copies = [...lastStage.matchAll(/^COPY (?:--chmod=\d+ )?([^-].*) \S+$/gm)]
  const copied = copies.flatMap(([, from = '']) => from.split(' '))
  t.same(kept.toSorted(), copied.toSorted(), 'the build context holds what the image copies')
  const modes = [...lastStage.matchAll(/^COPY --chmod=(\d+) .* \.\/\S+$/gm)].map(([, mode]) => mode)
  t.ok(modes.length > 1)
  for (const mode of modes) t.equal(mode, '555', 'the user of the image can enter each folder that COPY makes')
  const { scripts, engines, optionalDependencies } = JSON.parse(projectFile('package.json')) as {
    readonly scripts: Readonly<Record<string, string>>
    readonly engines: { readonly node: string }
    readonly optionalDependencies: Readonly<Record<string, string>>
  }
  const [, image = '', major] = /^ARG NODE_IMAGE=(node:(\d+)[^\s@]*)/m.exec(dockerfile) ?? []
  for (const node of Object.values(optionalDependencies)) {
    t.equal(node.split('.')[0], major, 'the image has the Node that npm ci installs')
  }
  t.ok(Number(/^>=(\d+)[.]\d+$/.exec(engines.node)?.[1]) <= Number(major), 'which package.json permits')
  t.equal(composeFile().services.sandbox.image, image, 'and so has the sandbox')
  const [, command = ''] = /^CMD (\[.*\])$/m.exec(dockerfile) ?? []
  const start = (JSON.parse(command) as string[]).join(' ')
  t.ok(
    dockerfile.includes(`\nRUN ${start} --warm-up\n`),
    'the image compiles the program with the options of its start',
  )
  t.ok(dockerfile.indexOf('NODE_COMPILE_CACHE') > dockerfile.indexOf('npm ci'), 'it keeps no compiled code of npm')
  t.ok(scripts['start']?.endsWith(` ${start}`), 'npm start runs the same command')
  t.ok(projectFile('deploy/systemd/trading-bff.service').includes(`/${start}\n`), 'and so does the systemd unit')
  const config = configOf(kubernetesFile().environment, makeSecrets(t.testdir({})))
  const [, exposed = ''] = /^EXPOSE (.*)$/m.exec(dockerfile) ?? []
  t.same(exposed.split(' ').map(Number), [config.listen.port, config.listen.opsPort])
  t.end()
})

await test("the image's health check tells a living server from a dead one, without a shell or curl", async (t) => {
  const [, text = ''] = /^HEALTHCHECK [^]*?CMD (\[.*\])$/m.exec(projectFile('Dockerfile')) ?? []
  const [program, ...options] = JSON.parse(text) as string[]
  t.equal(program, 'node')
  const tells = async (hosts: Record<string, string>): Promise<void> => {
    const server = await serverProcess(t, { ...ALONE, ...hosts })
    const env = { OPS_PORT: String(server.opsPort), ...hosts }
    const check = async (): Promise<unknown> => (await once(spawn(process.execPath, options, { env }), 'exit'))[0]
    await until(async () => (await check()) === 0, `a server with ${JSON.stringify(hosts)} lives`)
    server.child.kill('SIGKILL')
    await server.exited
    t.equal(await check(), 1)
  }
  await Promise.all([{}, { HOST: '127.0.0.2' }, { OPS_HOST: '127.0.0.2' }, { OPS_HOST: '0.0.0.0' }].map(tells))
})
