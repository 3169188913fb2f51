/** Where the server is, and with what to talk to it. */
export interface ServerOptions {
  /** Origin of the server, e.g. `https://bff.example.com`. The page's own unless given. */
  readonly baseUrl?: string
  /** For tests and for pages that wrap `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>
  /** For tests. */
  readonly WebSocket?: new (url: string) => WebSocket
}

/** The server as the rest of the package sees it. */
export interface Server {
  /** What stands before a path. */
  readonly base: string
  readonly fetch: (path: string, init: RequestInit) => Promise<Response>
  readonly socket: (path: string) => WebSocket
}

/** The address of the session. */
export const SESSION_PATH = '/auth/session'

/** Reads what a page says about its server. Touches nothing of the browser before it is used. */
export function serverAt(options: ServerOptions): Server {
  const base = (options.baseUrl ?? '').replace(/\/$/, '')
  return {
    base,
    fetch: (path, init) => (options.fetch ?? fetch)(base + path, { credentials: 'include', ...init }),
    socket: (path) => {
      const { href } = new URL(base + path, globalThis.location?.href)
      return new (options.WebSocket ?? WebSocket)(href.replace('http', 'ws'))
    },
  }
}
