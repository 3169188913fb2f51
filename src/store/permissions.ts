import { randomUUID } from 'node:crypto'
import { probeKey } from './keys.ts'
import { replyCode, type MasterCommands, type RedisLink } from './redis-link.ts'

/** What an operator should do if there are such commands. */
export const PERMISSION_ADVICE =
  'Allow the user of REDIS_URL to run them (ACL). Without them every process counts the calls and sockets of a session, and the upstream budget, on its own.'

/** What an operator should do if WAIT or INFO is forbidden. */
export const WAIT_ADVICE =
  'Allow the user of REDIS_URL to run them (ACL). Without them calls with an Idempotency-Key are refused, unless IDEMPOTENCY_REPLICAS is 0.'

/**
 * Tries the commands without which the limits over all instances and the upstream budget are not shared, and returns those
 * that this user may not run. Changes nothing: all of them concern a key that does not exist. None reads it, since the server
 * would then watch the key (CLIENT TRACKING).
 * @throws Error where the server is lost
 */
export function forbiddenCommands(server: Pick<MasterCommands, 'sendCommand'>): Promise<string[]> {
  const key = probeKey(randomUUID())
  return forbiddenAmong(server, [
    ['EVAL', 'return 0', '1', key],
    ['TIME'],
    ['INFO', 'server'],
    ['GETDEL', key],
    ['HDEL', key, ''],
    ['PEXPIRE', key, '1'],
  ])
}

/** The commands for confirmations by replicas that this user may not run. @throws Error where the server is lost */
export function forbiddenToConfirm(server: Pick<MasterCommands, 'sendCommand'>): Promise<string[]> {
  return forbiddenAmong(server, [
    ['WAIT', '0', '1'],
    ['INFO', 'replication'],
  ])
}

async function forbiddenAmong(
  server: Pick<MasterCommands, 'sendCommand'>,
  commands: readonly string[][],
): Promise<string[]> {
  const isForbidden = await Promise.all(
    commands.map((command) =>
      server.sendCommand(command).then(
        () => false,
        (error: unknown) => {
          const code = replyCode(error)
          if (code === undefined) throw error
          // ERR: a server on which the command does not exist, or was renamed.
          return code === 'NOPERM' || code === 'ERR'
        },
      ),
    ),
  )
  return commands.flatMap(([name = ''], at) => (isForbidden[at] === true ? [name] : []))
}

/** Logs a warning if a server forbids such commands. Never rejects. */
export async function warnOfForbiddenCommands(
  link: Pick<RedisLink, 'askMasters'>,
  log: { warn(details: object, message: string): void },
): Promise<void> {
  // A server that is lost meanwhile is not asked again: --check asks, too.
  const replies = await link.askMasters(forbiddenCommands).catch(() => [])
  const commands = [...new Set(replies.flat())]
  if (commands.length > 0) log.warn({ commands, advice: PERMISSION_ADVICE }, 'the session store forbids commands')
}
