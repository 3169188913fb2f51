import { execFileSync } from 'node:child_process'
import type { Test } from 'tap'
import { StallingProxy } from '../client/stalling-proxy.ts'
import { startSilentNameServer } from '../deployment/name-server.ts'
import { CLIENT_ID, SECRETS } from '../server/test-server.ts'
import { Collector } from '../telemetry/collector.ts'
import { answerJson } from '../upstream/scripted-upstream.ts'
import { startWorld, type World, RELAY } from '../world.ts'

export const PEERS = ['provider', 'rest', 'sockets', 'redis', 'collector'] as const
export type Peer = (typeof PEERS)[number]

/** The peers of a server, each with a name, an address and a network of its own that can break. */
export interface FivePeers {
  readonly world: World<'scripted'>
  /** With these a server uses them, and limits nobody. */
  readonly settings: Readonly<Record<string, string>>
  /** From now on its name server is silent. */
  silence(peer: Peer): void
  /** From now on connections are accepted, and nothing is said on them nor on open ones. */
  stall(peer: Peer): void
  /** From now on there is no route, and connections are closed. */
  cutOff(peer: Peer): void
  /** From now on packets vanish, also those of open connections. */
  lose(peer: Peer): void
  /** All is well again. */
  restore(): void
}

const nameOf = (peer: Peer): string => `${peer}.test`
const addressOf = (peer: Peer): string => `10.9.0.${1 + PEERS.indexOf(peer)}`
const ip = (...words: readonly string[]): void => void execFileSync('ip', words)
const own = (peer: Peer): readonly string[] => ['address', 'replace', `${addressOf(peer)}/32`, 'dev', 'lo']

/** Starts them in the namespaces of this test (`enterNamespaces`). They end with it. */
export async function fivePeers(t: Test): Promise<FivePeers> {
  const silent = new Set<string>()
  await startSilentNameServer(t, silent, new Map(PEERS.map((peer) => [nameOf(peer), addressOf(peer)])))
  for (const peer of PEERS) ip(...own(peer))
  const world = await startWorld(t, { ...RELAY, redis: true })
  const collector = await Collector.start(t)
  const { upstream, provider, redis } = world
  // Every call needs a new connection.
  upstream.onRest = (_request, response) => answerJson(response.setHeader('connection', 'close'), 200, { data: [] })
  upstream.onSocket = (socket) => socket.send('{}')
  const rest = `http://${upstream.host}`
  const urls = [provider.url, rest, rest, redis?.url ?? '', collector.url].map((url) => new URL(url))
  const proxies = await Promise.all(urls.map(({ port }) => StallingProxy.start(t, () => Number(port), '0.0.0.0')))
  const at = (peer: Peer): StallingProxy => proxies[PEERS.indexOf(peer)] as StallingProxy
  const hostOf = (peer: Peer): string => `${nameOf(peer)}:${at(peer).port}`
  const lost = new Set<Peer>()
  const unown = (peer: Peer): void => {
    if (!lost.has(peer)) ip('address', 'delete', `${addressOf(peer)}/32`, 'dev', 'lo')
    lost.add(peer)
  }
  return {
    world,
    silence: (peer) => void silent.add(nameOf(peer)),
    settings: {
      ...world.settings,
      ...collector.settings,
      CLIENT_ID,
      SESSION_SECRETS: SECRETS,
      UV_THREADPOOL_SIZE: '16',
      OTEL_BSP_SCHEDULE_DELAY: '500',
      HEALTH_SECONDS: '1',
      AUTH_STARTS_PER_MINUTE: '0',
      PUBLIC_HANDSHAKES_PER_MINUTE: '0',
      MAX_PUBLIC_RELAYS_PER_IP: '10000',
      API_URL: `http://${hostOf('rest')}`,
      WS_URL: `ws://${hostOf('sockets')}`,
      TOKEN_URL: `http://${hostOf('provider')}/oauth2/token`,
      REDIS_URL: `redis://${hostOf('redis')}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://${hostOf('collector')}`,
    },
    stall: (peer) => void (at(peer).isStalled = true),
    cutOff(peer) {
      unown(peer)
      ip('route', 'replace', 'unreachable', addressOf(peer))
      at(peer).cut()
    },
    lose(peer) {
      unown(peer)
      ip('route', 'flush', 'exact', addressOf(peer))
      ip('route', 'replace', addressOf(peer), 'dev', 'lo')
    },
    restore() {
      silent.clear()
      for (const peer of lost) {
        ip('route', 'flush', 'exact', addressOf(peer))
        ip(...own(peer))
      }
      lost.clear()
      for (const proxy of proxies) {
        proxy.isStalled = false
        proxy.cut()
      }
    },
  }
}
