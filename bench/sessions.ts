/**
 * What sessions cost, in figures: `node bench/sessions.ts [monitor|anonymous|live]…`, all without a word.
 * `monitor` takes three minutes: the Redis commands of 1,000 requests of 10 sessions on two instances.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { randomBytes } from 'node:crypto'
import { createClient } from 'redis'
import type { Test } from 'tap'
import { sessionKey } from '../src/store/keys.ts'
import { askRedis } from '../test/support/redis-topologies.ts'
import { serverProcess, ready } from '../test/support/server-process.ts'
import { newSession, sessionInstance, sessionRecord } from '../test/support/session-instance.ts'
import { testRedis } from '../test/support/world.ts'

const teardowns: (() => unknown)[] = []
const bench = { teardown: (end: () => unknown) => void teardowns.unshift(end) } as unknown as Test
const say = (text: string): boolean => process.stdout.write(`${text}\n`)
const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms))

async function monitor(): Promise<void> {
  const redis = await testRedis(bench)
  const instances = [await sessionInstance(bench, redis.url), await sessionInstance(bench, redis.url)]
  const [first] = instances
  if (first === undefined) return
  const ids = await Promise.all(Array.from({ length: 10 }, () => newSession(first)))
  const heard: string[] = []
  const watcher = await createClient({ url: redis.url, RESP: 2 }).connect()
  bench.teardown(() => watcher.destroy())
  await watcher.monitor((line) => void heard.push(line))
  for (let request = 0; request < 1000; request++) {
    const instance = instances[request % 2] ?? first
    const id = ids[Math.floor(request / 2) % ids.length] ?? ''
    const found = await instance.reader.read(instance.cookie(id))
    if (found.is !== 'live') throw new Error('the session was lost')
    instance.reader.used(found.session)
    await pause(180)
  }
  const counts = new Map<string, number>()
  for (const line of heard) {
    const name = /"(\w+)"/.exec(line)?.[1]?.toUpperCase() ?? '?'
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  say(`monitor: 1000 requests of 10 sessions on 2 instances in 3 min: ${JSON.stringify([...counts])}`)
}

async function anonymous(total = 1_000_000): Promise<void> {
  const redis = await testRedis(bench)
  const server = await serverProcess(bench, {
    ...{ PUBLIC_URL: 'http://localhost', AUTH_URL: 'http://localhost:1', API_URL: 'http://localhost:1' },
    ...{ WS_URL: 'ws://localhost:1', CLIENT_ID: 'bench', REDIS_URL: redis.url, LOG_LEVEL: 'silent' },
  })
  await ready(server)
  const before = await redisCalls(redis)
  const startedAt = performance.now()
  const paths = ['/auth/session', '/api/trading/v1/options/accounts', '/nowhere', '/auth/callback?state=x']
  await Promise.all(paths.map((path) => pipeline(server.port, path, total / paths.length)))
  const seconds = (performance.now() - startedAt) / 1000
  const keys = String(await askRedis(redis, ['DBSIZE']))
  const calls = (await redisCalls(redis)) - before
  say(`anonymous: ${total} requests in ${seconds.toFixed(0)} s: ${keys} keys, ${calls} reads and writes`)
}

async function redisCalls(redis: Awaited<ReturnType<typeof testRedis>>): Promise<number> {
  const stats = String(await askRedis(redis, ['INFO', 'commandstats']))
  const lines = stats.split('\n').filter((line) => /^cmdstat_(get|set|del|eval|incr|pexpire)/.test(line))
  return lines.reduce((sum, line) => sum + Number(/calls=(\d+)/.exec(line)?.[1]), 0)
}

/** Sends the same request over one connection, a hundred at a time. */
async function pipeline(port: number, path: string, count: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const batch =
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-CSRF: 1\r\nSec-Fetch-Dest: document\r\n\r\n`.repeat(100)
  let answers = 0
  let sent = 100
  socket.write(batch)
  for await (const chunk of socket) {
    answers += (chunk as Buffer).toString('latin1').split('HTTP/1.1 ').length - 1
    if (answers >= count) break
    while (answers >= sent - 50 && sent < count) {
      sent += 100
      socket.write(batch)
    }
  }
  if (answers < count) throw new Error(`the server hung up after ${answers} answers`)
}

async function live(total = 200_000): Promise<void> {
  const redis = await testRedis(bench)
  const instance = await sessionInstance(bench, redis.url)
  const used = async (): Promise<number> =>
    Number(/used_memory:(\d+)/.exec(String(await askRedis(redis, ['INFO', 'memory'])))?.[1])
  const before = await used()
  const ids: string[] = []
  for (let count = 0; count < total; count += 500) {
    const made = Array.from({ length: 500 }, () => {
      const tokens = {
        accessToken: randomBytes(32).toString('hex'),
        refreshToken: randomBytes(32).toString('hex'),
      }
      const loginKey = sessionKey(tokens.accessToken)
      return newSession(instance, { ...sessionRecord(), ...tokens, loginKey })
    })
    ids.push(...(await Promise.all(made)))
  }
  say(`live: ${total} sessions take ${Math.round(((await used()) - before) / total)} bytes each in Redis`)
  globalThis.gc?.()
  const heap = process.memoryUsage().heapUsed
  const near = ids.slice(0, 100_000)
  for (let at = 0; at < near.length; at += 500) {
    await Promise.all(near.slice(at, at + 500).map((id) => instance.reader.reload(id)))
  }
  globalThis.gc?.()
  const { sessions, bytes } = instance.reader.nearCache
  const each = Math.round((process.memoryUsage().heapUsed - heap) / sessions)
  say(`live: ${sessions} held near take ${each} bytes each, counted as ${Math.round(bytes / sessions)}`)
}

const parts = { monitor, anonymous, live }
const wanted = process.argv.slice(2)
for (const [name, run] of Object.entries(parts)) {
  if (wanted.length === 0 || wanted.includes(name)) await run()
}
for (const end of teardowns) await end()
