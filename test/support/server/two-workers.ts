import { get } from 'node:http'
import type { Test } from 'tap'
import { ready, serverProcess, type ProcessOptions, type ServerProcess } from './server-process.ts'
import { testRedis } from './test-server.ts'
import { ALONE } from './settings.ts'
import { untilSlow } from '../time/until.ts'

type LogLine = Record<string, unknown> & { msg: string }

/** The lines of a server's log with this message. */
export function said(server: ServerProcess, msg: string): LogLine[] {
  const lines = server.output().stdout.split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as LogLine).filter((line) => line.msg === msg)
}

/** A server of two ready workers. */
export async function twoWorkers(
  t: Test,
  settings: Record<string, string> = {},
  options: ProcessOptions = {},
): Promise<ServerProcess> {
  const redis = await testRedis(t)
  const server = await serverProcess(t, { ...ALONE, WORKERS: '2', REDIS_URL: redis.url, ...settings }, options)
  await untilSlow(() => said(server, 'ready').length === 2)
  t.ok(await ready(server))
  return server
}

/** The process ids of the workers that were started. */
export function workerPids(server: ServerProcess): number[] {
  return said(server, 'a worker starts').map(({ pid }) => Number(pid))
}

/** The status of a GET on a connection of its own, which the next worker accepts. */
export async function status(port: number, path: string, headers: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, headers, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    }).on('error', reject)
  })
}
