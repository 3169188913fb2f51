import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import type { SandboxProvider } from '../../sandbox/provider.ts'
import type { SandboxUpstream } from '../../sandbox/upstream.ts'
import { SecretVolume } from '../support/config/secret-volume.ts'
import { OPS_TOKEN } from '../support/login/identity.ts'
import { OIDC } from '../support/login/oidc-world.ts'
import { openIdProvider } from '../support/login/openid-provider.ts'
import { sandboxProvider } from '../support/parts.ts'
import type { DurableTopology } from '../support/redis/durable-topologies.ts'
import { stalledWay, type StalledWay } from '../support/peers/stalled-way.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { wrongBy, wrongByFile } from '../support/server/wrong-clock.ts'
import { signalAll } from '../support/time/stopped-process.ts'
import { startParts } from '../support/world.ts'
import type { BrowserTab } from './browser-tab.ts'
import { fleetNames, hostOf, type FleetNames } from './fleet-names.ts'
import { fleetRedis } from './fleet-redis.ts'
import type { Budget } from './history.ts'
import { Link } from './link.ts'
import type { Observer } from './observer.ts'
import type { FleetPlan } from './plan.ts'

/** How an instance learns whose a session is. */
const IDENTIFIED = { IDENTITY_PATH: '/account/v1/me', IDENTITY_POINTER: '/data/user_id' }
const OPEN_ID = { ...OIDC, OAUTH_SCOPE: 'openid profile trade' }

/** With a budget, an instance is ready after three leases of 15 s at the latest. */
const STARTS_MS = 75_000

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SLEEPING_CLOCK = new URL('../support/time/suspended-machine.ts', import.meta.url).href

/** A server as it runs in production, and the network on all sides of it. */
export interface Instance {
  readonly at: number
  readonly name: string
  /** The newest process. */
  process: ServerProcess
  readonly links: Readonly<Record<'browsers' | 'provider' | 'upstream', Link>> & {
    /** Only to a single server: Sentinels and nodes of a Cluster name the addresses of others. */
    readonly redis: Link | undefined
  }
  /** The way to the provider, before its link, where first packets can be lost. */
  readonly way: StalledWay | undefined
  /** All that its processes have logged. */
  readonly log: () => string
  /** The files from which it has SESSION_SECRETS and, with a link to it, REDIS_URL. */
  readonly secrets: SecretVolume
  /** From now on its time of day is wrong by so much (ms), unless it is of another version, which may need a right one. */
  readonly setClock: (wrongMs: number) => void
  /** Its next process runs the product of this folder. */
  readonly setCheckout: (folder: string) => void
  /** Kills all of its processes. */
  readonly kill: () => Promise<void>
  /** Starts it again if its process has ended, or ends. Resolves once it is ready. */
  readonly restart: () => Promise<void>
}

/** Real parts, with a link between any two of them, and the observer of all. They end with the test. */
export interface Fleet {
  readonly plan: FleetPlan
  /** The folder of the product that runs. */
  readonly checkout: string
  readonly observer: Observer
  readonly instances: readonly Instance[]
  readonly provider: SandboxProvider
  readonly upstream: SandboxUpstream
  readonly redis: DurableTopology
  readonly names: FleetNames
  /** The tabs that are open. */
  readonly tabs: Set<BrowserTab>
  /** The public address, where each connection gets the next instance. */
  readonly publicUrl: string
  readonly t: Test
}

/** Starts a fleet, and lets the observer watch it. @param checkout the folder of the product, unless it is this repository */
export async function startFleet(t: Test, plan: FleetPlan, observer: Observer, checkout = ROOT): Promise<Fleet> {
  const redis = await fleetRedis(t, plan.redis)
  const names = fleetNames(t, plan.hasTwoAddresses)
  const parts = await startParts(t, {
    provider: (plan.isOpenId === true ? openIdProvider : sandboxProvider)({
      refreshTokens: plan.refreshTokens,
      accessTokenSeconds: plan.accessTokenSeconds,
      watch: observer.atProvider,
    }),
    upstream: 'sandbox',
    market: { tickMs: 250, followsHost: true, hasBigIds: true, watch: observer.upstream },
    settings: {
      AUTH_STARTS_PER_MINUTE: '0',
      PUBLIC_HANDSHAKES_PER_MINUTE: '0',
      REDIS_URL: redis.url,
      OPS_TOKEN,
      ...(plan.isOpenId === true ? OPEN_ID : IDENTIFIED),
      ...plan.settings,
    },
  })
  const { upstream, provider, settings, publicUrl } = parts
  const targets = {
    redis: plan.redis === 'single' ? redis.url : undefined,
    provider: provider.url,
    upstream: upstream.url,
  }
  const indices = Array.from({ length: plan.instances }, (_each, at) => at)
  const instances = await Promise.all(
    indices.map((at) => startInstance(t, { at, plan, settings, targets, names, checkout, observer })),
  )
  observer.history.budgets.push(...budgetsOf(plan))
  let next = 0
  const anyPort = (): number => instances[next++ % instances.length]?.links.browsers.port ?? 0
  await Link.start(t, 'balancer', anyPort, { now: observer.now, port: parts.port })
  observer.watch(
    t,
    provider,
    instances.map((instance) => ({
      name: instance.name,
      pids: () => pidsOf(instance),
      sentAt: (port) => instance.links.upstream.sentAt(port),
      readyUrl: () => `http://127.0.0.1:${instance.process.opsPort}/readyz`,
    })),
  )
  return { plan, checkout, observer, instances, provider, upstream, redis, names, tabs: new Set(), publicUrl, t }
}

function budgetsOf({ settings }: FleetPlan): Budget[] {
  const windows = settings['UPSTREAM_BUDGET']?.split(',') ?? []
  return windows.map((window) => {
    const [calls = 0, seconds = 0] = window.split('/').map(Number)
    return { calls, windowMs: seconds * 1000 }
  })
}

interface Place {
  readonly at: number
  readonly settings: Readonly<Record<string, string>>
  readonly targets: Readonly<Record<'provider' | 'upstream', string> & { redis: string | undefined }>
  readonly checkout: string
  readonly names: FleetNames
  readonly plan: FleetPlan
  readonly observer: Pick<Observer, 'now' | 'history'>
}

async function startInstance(t: Test, place: Place): Promise<Instance> {
  const { at, plan, settings, targets, names, checkout } = place
  const { now, history } = place.observer
  const name = `instance ${at}`
  const [port, opsPort] = [await freePort(), await freePort()]
  const link = (to: string, target: number): Promise<Link> => Link.start(t, `${name} → ${to}`, () => target, { now })
  const linkTo = (to: string, url: string): Promise<Link> => link(to, Number(new URL(url).port))
  const links = {
    browsers: await Link.start(t, `browsers → ${name}`, () => port, { now }),
    redis: targets.redis === undefined ? undefined : await linkTo('redis', targets.redis),
    provider: await linkTo('provider', targets.provider),
    upstream: await linkTo('upstream', targets.upstream),
  }
  const way = plan.hasTwoAddresses === true ? await stalledWay(t, links.provider.port) : undefined
  const provider = address(way ?? links.provider, plan.isNamed && hostOf('provider'))
  const upstream = address(links.upstream, plan.isNamed && hostOf('upstream'))
  const { SESSION_SECRETS = '', REDIS_URL = '', ...others } = settings
  const dir = await mkdtemp(join(tmpdir(), 'bff-nemesis-'))
  t.teardown(() => rm(dir, { recursive: true, force: true }))
  const redis = links.redis && { REDIS_URL: `redis://${address(links.redis)}` }
  const secrets = new SecretVolume(dir, { SESSION_SECRETS, ...redis })
  const clock = join(dir, 'clock')
  const own = {
    ...others,
    ...secrets.settings,
    PORT: String(port),
    OPS_PORT: String(opsPort),
    ...(redis === undefined && { REDIS_URL }),
    TOKEN_URL: `http://${provider}/oauth2/token`,
    REVOCATION_URL: `http://${provider}/oauth2/revoke`,
    ...(settings['JWKS_URL'] && { JWKS_URL: `http://${provider}${new URL(settings['JWKS_URL']).pathname}` }),
    API_URL: `http://${upstream}`,
    WS_URL: `ws://${upstream}`,
  }
  const nodeOptions = [
    ...clockOptions(plan.clocks?.[at] ?? 0),
    ...wrongByFile(clock),
    ...(plan.isNamed ? names.options : []),
  ]
  const past: ServerProcess[] = []
  let folder = checkout
  const start = async (): Promise<ServerProcess> => {
    const started = await serverProcess(t, own, {
      nodeOptions,
      main: join(folder, 'src/main.ts'),
      isOlder: folder !== checkout,
    })
    past.push(started)
    if (!(await ready(started, STARTS_MS))) throw new Error(`${name} does not start: ${started.output().stderr}`)
    return started
  }
  let starting: Promise<void> | undefined
  const startAgain = async (): Promise<void> => {
    const { child, exited } = instance.process
    if (child.exitCode === null && child.signalCode === null && !child.killed) return
    await exited
    instance.process = await start()
  }
  const instance: Instance = {
    at,
    name,
    links,
    way,
    secrets,
    setClock: (wrongMs) => writeFileSync(clock, String(folder === checkout ? wrongMs : 0)),
    setCheckout(next) {
      folder = next
      if (folder !== checkout) instance.setClock(0)
    },
    process: await start(),
    log: () => past.map((each) => each.output().stdout + each.output().stderr).join(''),
    async kill() {
      const pids = pidsOf(instance)
      instance.process.child.kill('SIGKILL')
      signalAll(pids, 'SIGKILL')
      history.kills.push({ at: now(), instance: at })
      await instance.process.exited
    },
    restart: () => (starting ??= startAgain().finally(() => (starting = undefined))),
  }
  return instance
}

/** The options of Node.js with which an instance has such a clock. */
function clockOptions(clock: number | 'sleeps'): readonly string[] {
  if (clock === 'sleeps') return ['--import', SLEEPING_CLOCK]
  return clock === 0 ? [] : wrongBy(clock)
}

const address = ({ port }: Pick<Link, 'port'>, host: string | false = false): string => `${host || '127.0.0.1'}:${port}`

/** The processes of an instance that serve: itself, or its workers. */
function pidsOf({ process: { child } }: Instance): number[] {
  const pid = child.pid ?? 0
  try {
    const workers = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
    return workers === '' ? [pid] : workers.split(' ').map(Number)
  } catch {
    // It has ended.
    return []
  }
}
