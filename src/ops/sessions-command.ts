import type { Config } from '../config/config.ts'
import { codeOf } from '../upstream/no-response.ts'
import { DELEGATION_MS } from './delegate.ts'
import { EXIT } from './exit.ts'

/** Longer than a supervisor waits for all of its workers, so that it says itself that none answers. */
const TIMEOUT_MS = DELEGATION_MS + 15_000

const USAGE = 'npm run sessions -- list <subject> | end <subject> [<tag>]'

interface Listed {
  readonly sessions: readonly {
    readonly tag: string
    readonly started_at: number
    readonly last_used_at?: number
    readonly client: string
  }[]
}

/**
 * Runs `--sessions`: asks the ops listener of a running server with the same settings to list or end sessions.
 * @param words `list` or `end`, the subject, and perhaps the tag of a session to end
 * @returns the exit code
 */
export async function sessionsCommand(
  config: Pick<Config, 'listen' | 'ops'>,
  words: readonly string[],
  print: (line: string) => void,
): Promise<number> {
  const [action, subject, tag, ...rest] = words
  const isList = action === 'list'
  if ((!isList && action !== 'end') || subject === undefined || (isList && tag !== undefined) || rest.length > 0) {
    print(`Usage: ${USAGE}`)
    return EXIT.usage
  }
  if (config.ops.token === undefined) {
    print('OPS_TOKEN is not set: the server has no /sessions without it.')
    return EXIT.config
  }
  const url = new URL(`http://${reachable(config.listen.opsHost)}:${config.listen.opsPort}/sessions`)
  url.searchParams.set('subject', subject)
  if (tag !== undefined) url.searchParams.set('tag', tag)
  try {
    const response = await fetch(url, {
      method: isList ? 'GET' : 'DELETE',
      headers: { authorization: `Bearer ${config.ops.token.current}` },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const body: unknown = await response.json()
    if (!response.ok) {
      print(`${url.origin} answers ${response.status}: ${(body as { error?: string }).error ?? ''}`)
      return EXIT.unavailable
    }
    if (isList) for (const line of table(body as Listed)) print(line)
    else print(`Ended: ${(body as { ended: number }).ended}`)
    return 0
  } catch (error) {
    const { cause = error } = error as Error
    print(`${url.origin} does not answer: ${codeOf(cause as Error)}. Is the server running with these settings?`)
    return EXIT.unavailable
  }
}

function table({ sessions }: Listed): string[] {
  if (sessions.length === 0) return ['No sessions.']
  const rows = sessions.map(({ tag, started_at, last_used_at, client }) => [
    tag,
    isoTime(started_at),
    last_used_at === undefined ? 'unknown' : isoTime(last_used_at),
    client,
  ])
  return [['TAG', 'STARTED', 'LAST USED', 'CLIENT'], ...rows].map(([tag = '', started = '', used = '', client = '']) =>
    [tag.padEnd(12), started.padEnd(22), used.padEnd(22), client].join(''),
  )
}

function isoTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000', '')
}

/** An address to which a client can connect, for one to which a listener is bound. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
