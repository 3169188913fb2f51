import { isIP } from 'node:net'
import { parseArgs } from 'node:util'

/** What follows `npm run sandbox --`. */
export interface SandboxOptions {
  /** The origin of a page for which a server is started, too. */
  readonly page: URL | undefined
  /** The name or address by which other devices reach this machine. They need TLS. */
  readonly host: string | undefined
  /** Whether the settings of a server are written to `.env` instead of being printed. */
  readonly writesEnv: boolean
}

const EXAMPLE = 'npm run sandbox -- --page http://localhost:5173'

/** @throws Error that says what to do, where the options are wrong or contradict each other */
export function readOptions(args: readonly string[]): SandboxOptions {
  const { page: pageText, host, 'write-env': writesEnv } = parsed(args)
  if (host !== undefined && pageText === undefined) {
    throw new Error(`--host says where a phone finds a page: name the page, too, as in ${EXAMPLE} --host ${host}`)
  }
  if (host !== undefined && !isHostOfMachine(host)) {
    throw new Error('--host must be the name or the IPv4 address by which a phone reaches this machine, without a port')
  }
  if (writesEnv && pageText !== undefined) {
    throw new Error('--write-env is for a server that you start yourself, and --page starts one: use one of the two')
  }
  return { page: pageText === undefined ? undefined : pageOf(pageText), host, writesEnv }
}

function parsed(args: readonly string[]) {
  const options = {
    page: { type: 'string' },
    host: { type: 'string' },
    'write-env': { type: 'boolean', default: false },
  } as const
  try {
    return parseArgs({ args: [...args], options }).values
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new Error(`${message.replace(/\.$/, '')}. Usage: ${EXAMPLE} [--host 192.168.1.20]`, { cause: error })
  }
}

/** Browsers keep the cookies of a login only at `https`, or on this machine. */
function pageOf(text: string): URL {
  const page = URL.parse(text)
  if (page === null || !/^https?:$/.test(page.protocol) || page.href !== `${page.origin}/`) {
    throw new Error(`--page must be the origin of your page, as in ${EXAMPLE}`)
  }
  const local = `http://localhost:${page.port || '5173'}`
  const isLocal = /^(?:localhost|127\.0\.0\.1|(?:[\w-]+\.)+localhost)$/.test(page.hostname)
  if (!isLocal) {
    const forPhone = isHostOfMachine(page.hostname)
      ? `. For a phone add --host ${page.hostname}: the sandbox then serves your page over TLS`
      : ''
    throw new Error(`--page must be on this machine, as in --page ${local}${forPhone}`)
  }
  if (page.protocol === 'https:') {
    throw new Error(`Serve your page without TLS, and start with --page ${local}. --host adds TLS, for a phone`)
  }
  return page
}

function isHostOfMachine(host: string): boolean {
  const isName = isIP(host) === 0 && /^[a-z\d]([\w.-]*[a-z\d])?$/i.test(host) && !/(^|\.)\d+$/.test(host)
  return isName || (isIP(host) === 4 && host !== '0.0.0.0')
}
