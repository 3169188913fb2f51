import { fileURLToPath } from 'node:url'
import { freePort } from '../sandbox/listening.ts'
import { publicOrigin, settingsOf, startThisServer, THIS_SERVER } from './contenders.ts'
import { Program } from './program.ts'
import { startPump, type Pump } from './pumps.ts'
import type { Choice } from './rest-load.ts'
import { listening, nginx, startWorld } from './world.ts'

/** A running server that relays browsers' sockets to upstream. */
export interface RelayContender {
  readonly name: string
  readonly program: Program
  readonly port: number
  /** The path of its public relay. */
  readonly path: string
  /** The Origin header it expects. */
  readonly origin: string
}

/** All contenders and both ends of their sockets. */
export interface RelayStage {
  readonly contenders: readonly RelayContender[]
  readonly browsers: Pump
  readonly upstream: Pump
}

export const BARE_WS = 'bare ws-to-ws relay'
const PIPE = 'raw pipe'
export const NGINX = 'nginx'

/** Starts both ends and all contenders between them; in a short run this server and the bare relay. */
export async function startRelays({ before, short = false }: Choice): Promise<RelayStage> {
  const browsers = startPump('browsers')
  const upstream = startPump('upstream sockets')
  const wsPort = await upstream.order({ do: 'listen' })
  const wsUrl = `ws://127.0.0.1:${wsPort}`
  const contenders = [
    await thisServer(THIS_SERVER, wsUrl),
    ...(before === undefined ? [] : [await thisServer('before', wsUrl, {}, before)]),
    await bareRelay(wsUrl),
    ...(short ? [] : [await bare(PIPE, 'pipe-relay.ts', wsUrl), await nginxRelay(wsPort)]),
  ]
  return { contenders, browsers, upstream }
}

/** Starts this server. @param settings differ from those of production @param root the root folder of another checkout */
export async function thisServer(
  name: string,
  wsUrl: string,
  settings: Readonly<Record<string, string>> = {},
  root?: string,
): Promise<RelayContender> {
  const port = await freePort()
  const world = await startWorld([`${publicOrigin(port)}/auth/callback`], { wsUrl })
  const program = await startThisServer({ ...settingsOf(world, port), ...settings }, { root })
  return { name, program, port, path: '/ws/public', origin: publicOrigin(port) }
}

/** Starts the relay of a dozen lines on ws. */
export const bareRelay = (wsUrl: string): Promise<RelayContender> => bare(BARE_WS, 'ws-relay.ts', wsUrl)

/** Starts a server of bench/bare. @param apiUrl where the trading relay gets its one-time URLs */
export async function bare(name: string, file: string, wsUrl: string, apiUrl = ''): Promise<RelayContender> {
  const port = await freePort()
  const path = fileURLToPath(new URL(`bare/${file}`, import.meta.url))
  const env = { NODE_ENV: 'production', PORT: String(port), WS_URL: wsUrl, API_URL: apiUrl }
  const program = new Program(name, process.execPath, [path], { env, on: 'measured' })
  await listening(program, port)
  return { name, program, port, path: '/', origin: 'https://localhost' }
}

/** Starts nginx between browsers and the upstream at a port. */
export async function nginxRelay(wsPort: number): Promise<RelayContender> {
  const name = NGINX
  const port = await freePort()
  const program = nginx(
    name,
    'measured',
    `access_log nginx.access;
    server {
      listen 127.0.0.1:${port} backlog=4096;
      location / {
        proxy_pass http://127.0.0.1:${wsPort};
        proxy_http_version 1.1;
        proxy_set_header Connection upgrade;
        proxy_set_header Upgrade websocket;
        proxy_read_timeout 120s;
      }
    }`,
  )
  await listening(program, port)
  return { name, program, port, path: '/', origin: 'https://localhost' }
}
