/** Where the server is, and how to reach it. */
export interface ServerOptions {
  /**
   * The origin of the server, e.g. `https://bff.example.com`; the origin of the page by default. If the two differ, the
   * operator of the server must list the origin of the page in `FRONTEND_ORIGINS`.
   */
  readonly baseUrl?: string
  /** Replaces the global `fetch`, in tests or for a page that wraps it. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>
  /** Replaces the global `WebSocket`, in tests or for a page that wraps it. */
  readonly WebSocket?: new (url: string) => WebSocket
}

/** The connection of the package to its server. */
export interface Server {
  /** The prefix of every path: the origin of the server, or an empty string for that of the page. */
  readonly base: string
  readonly fetch: (path: string, init: RequestInit) => Promise<Response>
  readonly socket: (path: string) => WebSocket
  /** Called with every time that the server tells, in seconds, and when it was asked, if it was (`ServerClock.note`). */
  readonly onTime?: (seconds: number, sentAt?: number) => void
}

/** The path of the session. */
export const SESSION_PATH = '/auth/session'

/** Prepares the connection to a server. It uses no browser API until it is used, so it also works on a rendering server. */
export function serverAt(options: ServerOptions): Server {
  const base = (options.baseUrl ?? '').replace(/\/$/, '')
  return {
    base,
    fetch: (path, init) => (options.fetch ?? fetch)(base + path, { credentials: 'include', ...init }),
    socket: (path) =>
      new (options.WebSocket ?? WebSocket)(new URL(base + path, globalThis.location?.href).href.replace('http', 'ws')),
  }
}
