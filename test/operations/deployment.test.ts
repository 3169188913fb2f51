import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig } from '../../src/config/config.ts'
import { SECRET_SETTINGS, settingRules } from '../../src/config/settings.ts'
import { ready, serverProcess } from '../support/server-process.ts'

type Node = Record<string, unknown>
type Environment = Record<string, string>

const ROOT = new URL('../../', import.meta.url)
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8')
const names = new Set([...Object.keys(settingRules), ...SECRET_SETTINGS.map((name) => `${name}_FILE`)])

/** The configuration that an environment makes, with real files in the place of those it names. */
function configOf(environment: Environment, secrets: string) {
  const here = Object.entries(environment).map(([name, value]) =>
    name.endsWith('_FILE') ? [name, join(secrets, value.replace(/.*\//, ''))] : [name, value],
  )
  return readConfig(Object.fromEntries(here) as Environment)
}

function makeSecrets(dir: string): string {
  execFileSync(new URL('deploy/make-secrets.sh', ROOT).pathname, [dir], { stdio: 'ignore' })
  return dir
}

await test('make-secrets.sh makes files that only their owner finds, and leaves those that are there', (t) => {
  const dir = makeSecrets(join(t.testdir({}), 'secrets'))
  const files = ['session-secrets', 'redis-password', 'redis-url', 'certificate.pem']
  const contents = (): string[] => files.map((file) => readFileSync(join(dir, file), 'utf8'))
  const first = contents()
  t.equal(new Set(first).size, files.length)
  t.match(first[3], /BEGIN PRIVATE KEY[^]*BEGIN CERTIFICATE/)
  t.equal(statSync(dir).mode & 0o777, 0o700)
  makeSecrets(dir)
  t.same(contents(), first)
  t.end()
})

/** A value of the compose file when nothing is set outside. */
const withDefaults = (value: string): string => value.replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1')

await test('docker-compose.yml starts instances that fit the balancer and the store', (t) => {
  const compose = parse(read('docker-compose.yml'), { merge: true }) as {
    services: Record<
      string,
      Node & { environment?: Environment; secrets?: string[]; networks: Node | string[] }
    >
    secrets: Record<string, { file: string }>
  }
  const { app, balancer, redis, sandbox } = compose.services
  const environment = Object.fromEntries(
    Object.entries(app?.environment ?? {}).map(([name, value]) => [name, withDefaults(value)]),
  )
  for (const name of Object.keys(environment)) t.ok(names.has(name), `${name} is a setting`)
  const secrets = makeSecrets(t.testdir({}))
  const config = configOf(environment, secrets)
  t.equal(
    config.redisUrl,
    `redis://:${readFileSync(join(secrets, 'redis-password'), 'utf8').trim()}@redis:6379`,
  )

  for (const service of Object.values(compose.services)) {
    for (const name of service.secrets ?? []) t.ok(compose.secrets[name], `${name} is declared`)
  }
  for (const [name, { file }] of Object.entries(compose.secrets)) {
    t.ok(statSync(join(secrets, file.replace('deploy/secrets/', ''))).isFile(), `${name} is made`)
  }
  for (const hardened of [app, balancer, redis]) {
    t.match(hardened, { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] })
  }
  for (const [name, service] of Object.entries(compose.services)) {
    t.match(
      service,
      { logging: { options: { 'max-size': String, 'max-file': String } } },
      `${name}: logs end`,
    )
    t.match(service, { deploy: { resources: { limits: { memory: /^[$\d]/ } } } }, `${name}: so does memory`)
  }
  t.match(app, { deploy: { replicas: 3 }, stop_grace_period: '30s' })
  t.ok(config.drainMs < 30_000, 'a drain ends before it is killed')
  t.notOk('ports' in (app ?? {}), 'nobody reaches an instance past the balancer')
  t.notOk('ports' in (redis ?? {}))
  t.same([balancer?.networks, redis?.networks], [['edge'], ['store']])
  t.match(sandbox, {
    profiles: ['sandbox'],
    networks: { edge: { aliases: [new URL(config.oauth.authUrl).hostname] } },
  })

  const haproxy = read('deploy/haproxy.cfg')
  const [, inter = '', fall = ''] = /inter (\d+)s fall (\d+)/.exec(haproxy) ?? []
  t.ok(
    config.drainWaitMs > Number(inter) * Number(fall) * 1000,
    'the balancer notices before an instance closes',
  )
  t.match(haproxy, `check port ${config.listen.opsPort} `)
  t.match(haproxy, `app:${config.listen.port} `)
  t.end()
})

/** What is looked at of the deployment. */
interface Deployment {
  readonly spec: {
    readonly replicas: number
    readonly strategy: Node
    readonly selector: { readonly matchLabels: Node }
    readonly template: {
      readonly metadata: { readonly labels: Node }
      readonly spec: Node & {
        readonly containers: readonly (Node & { readonly env: readonly { name: string; value: string }[] })[]
      }
    }
  }
}

const probe = (path: string) => ({ httpGet: { path, port: 'ops' } })

await test('kubernetes.yaml is a deployment that production settings accept', (t) => {
  const documents = parseAllDocuments(read('docs/kubernetes.yaml'), { version: '1.1' })
  t.same(
    documents.flatMap(({ errors }) => errors),
    [],
  )
  const [deployment, service, budget, policy] = documents.map((document) => document.toJS() as Node)
  t.same(
    [deployment, service, budget, policy].map((each) => each?.['kind']),
    ['Deployment', 'Service', 'PodDisruptionBudget', 'NetworkPolicy'],
  )
  const { replicas, strategy, template, selector } = (deployment as unknown as Deployment).spec
  const [container] = template.spec.containers
  const environment = Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value]))
  for (const name of Object.keys(environment)) t.ok(names.has(name), `${name} is a setting`)
  const config = configOf(environment, makeSecrets(t.testdir({})))
  t.ok(config.production)

  t.equal(replicas, 3)
  t.same(strategy, { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } })
  t.ok(Number(template.spec['terminationGracePeriodSeconds']) * 1000 > config.drainMs)
  t.match(container, {
    ports: [
      { name: 'http', containerPort: config.listen.port },
      { name: 'ops', containerPort: config.listen.opsPort },
    ],
    startupProbe: probe('/livez'),
    livenessProbe: probe('/livez'),
    readinessProbe: { ...probe('/readyz'), periodSeconds: 2, failureThreshold: 2 },
    resources: { requests: { memory: String }, limits: { memory: String } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
  })
  t.ok(config.drainWaitMs > 4000, 'two failed probes come first')
  t.match(template.spec['securityContext'], {
    runAsNonRoot: true,
    runAsUser: 1000,
    seccompProfile: { type: 'RuntimeDefault' },
  })
  t.match(template.spec['topologySpreadConstraints'], [{ labelSelector: selector }])
  t.same(template.metadata.labels, selector.matchLabels)
  t.match(service, { spec: { selector: selector.matchLabels, ports: [{ targetPort: 'http' }] } })
  t.match(budget, { spec: { selector } })
  t.match(policy, { spec: { podSelector: selector } })
  t.end()
})

await test('haproxy takes its configuration as it is', (t) => {
  const dir = makeSecrets(join(t.testdir({}), 'secrets'))
  const file = join(dir, 'haproxy.cfg')
  writeFileSync(
    file,
    read('deploy/haproxy.cfg').replace('/run/secrets/certificate', join(dir, 'certificate.pem')),
  )
  const env = { PATH: `${process.env['PATH']}:/usr/sbin` }
  const { status, stderr } = spawnSync('haproxy', ['-c', '-f', file], { env })
  t.equal(status, 0, String(stderr))
  t.notMatch(String(stderr), /WARNING/)
  t.end()
})

await test('the image has the program and nothing else, and runs it as nobody in particular', (t) => {
  const ignored = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  t.same(ignored, ['*', '!package.json', '!package-lock.json', '!src'])
  const dockerfile = read('Dockerfile')
  t.match(dockerfile, /^FROM node:24-slim$/m)
  t.match(dockerfile, /^RUN npm ci --omit=dev --omit=optional /m)
  t.match(dockerfile, /^USER \d+:\d+$/m)
  const [, command = ''] = /^CMD (\[.*\])$/m.exec(dockerfile) ?? []
  const start = (JSON.parse(command) as string[]).join(' ')
  t.match(start, /^node .*src\/main\.ts$/)
  t.ok(dockerfile.includes(`\nRUN ${start} --warm-up\n`), 'what is compiled is what will run')
  t.ok(dockerfile.indexOf('NODE_COMPILE_CACHE') > dockerfile.indexOf('npm ci'), 'and nothing of npm')
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  t.ok(scripts['start']?.endsWith(` ${start}`), 'npm start is the same')
  t.end()
})

await test("the image's health check tells a living server from a dead one, without a shell or curl", async (t) => {
  const [, text = ''] = /^HEALTHCHECK [^]*?CMD (\[.*\])$/m.exec(read('Dockerfile')) ?? []
  const [program, ...options] = JSON.parse(text) as string[]
  t.equal(program, 'node')
  const server = await serverProcess(t, {
    PUBLIC_URL: 'http://localhost:3000',
    AUTH_URL: 'http://127.0.0.1:9',
    API_URL: 'http://127.0.0.1:9',
    WS_URL: 'ws://127.0.0.1:9',
    CLIENT_ID: 'client',
  })
  t.ok(await ready(server))
  const check = (): number | null =>
    spawnSync(process.execPath, options, { env: { OPS_PORT: String(server.opsPort) } }).status
  t.equal(check(), 0)
  server.child.kill('SIGKILL')
  await server.exited
  t.equal(check(), 1)
})
