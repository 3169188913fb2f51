import type { RedisArgument } from '@redis/client'
import type { RedisCommands } from './links/redis-link.ts'

/**
 * Runs a script by its text. By its digest a server may not know it: a replica that was promoted, or another master of a Cluster.
 * A second try with the text would come too late for the WAIT, or the CLIENT CACHING, that was sent with the first. The text
 * costs the server about a microsecond.
 */
export function runScript(
  redis: Pick<RedisCommands, 'send'>,
  script: string,
  keys: readonly string[],
  args: readonly (RedisArgument | number)[] = [],
  hasBytes?: boolean,
): Promise<unknown> {
  const words = args.map((arg) => (typeof arg === 'number' ? String(arg) : arg))
  return redis.send(keys[0] ?? '', ['EVAL', script, String(keys.length), ...keys, ...words], hasBytes)
}

/**
 * Lets a script run on a full server (maxmemory, noeviction), which refuses every other command that may need memory
 * (redis.io/docs/latest/develop/programmability/eval-intro: script flags). Otherwise strangers could fill the server with
 * logins that they start, and so prevent the renewal of every token. For scripts that add little, bounded per session.
 */
export function evenWhenFull(script: string): string {
  return `#!lua flags=allow-oom\n${script}`
}

/** Sets `now`, the server's time (epoch ms). */
export const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`
