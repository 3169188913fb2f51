/**
 * The bare proxy, the bare relay and the bare fan-out in one process, for comparison with a server that is all of them.
 * `PORT=… API_URL=… RELAY_PORT=… RELAY_URL=… FEED_PORT=… FEED_URL=… node all.ts`
 */

const { env } = process
const { API_URL, RELAY_PORT, RELAY_URL, FEED_PORT, FEED_URL } = env

await import('./rest-proxy.ts')
// Each reads its settings when it is loaded. Without an API_URL, the relay asks for no one-time URLs.
Object.assign(env, { PORT: RELAY_PORT, WS_URL: RELAY_URL, API_URL: '' })
await import('./ws-relay.ts')
Object.assign(env, { PORT: FEED_PORT, WS_URL: FEED_URL, API_URL })
await import('./fan-out.ts')
