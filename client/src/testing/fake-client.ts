import { createClient, type Client, type PublicSocket, type ServerOptions } from '../core/client.ts'
import { ServerInMemory, type FakeServer } from './fake-server.ts'
import type { FakeSession } from './fake-session.ts'
import { FakeSocket } from './fake-socket.ts'

/** Options of {@link createFakeClient}. */
export interface FakeOptions {
  /** Whose session the browser has at first; none by default. */
  readonly session?: FakeSession | undefined
  /** The origin of the server in `loginUrl()`; one that no other client has by default, so that none counts as another tab. */
  readonly baseUrl?: string | undefined
}

/** A client, and the server in memory that it talks to. `login()` and `signup()` leave the page where it is. */
export interface FakeClient extends Client {
  readonly server: FakeServer
}

/**
 * Creates a client for tests of a page: the real one, at a server in memory that the test drives.
 * ```ts
 * const client = createFakeClient({ session: { subject: 'user-1' } })
 * client.server.respond('GET', '/trading/v1/options/accounts', { data: [] })
 * ```
 */
export function createFakeClient(options: FakeOptions = {}): FakeClient {
  const { baseUrl = `http://fake-${crypto.getRandomValues(new Uint32Array(2)).join('-')}.test`, session } = options
  const inMemory = new ServerInMemory(baseUrl.replace(/\/$/, ''))
  if (session) inMemory.sessions.begin(session)
  const WebSocket = class extends FakeSocket {
    constructor(url: string) {
      super(inMemory.network, url)
      inMemory.connect(this)
    }
  } as unknown as NonNullable<ServerOptions['WebSocket']>
  const client = createClient({ baseUrl, fetch: inMemory.fetch, WebSocket })
  const navigations: string[] = []
  const opened = new Set<PublicSocket>()
  const noted = <S extends PublicSocket>(socket: S): S => {
    opened.add(socket)
    return socket
  }
  return {
    ...client,
    publicSocket: () => noted(client.publicSocket()),
    tradingSocket: (accountId) => noted(client.tradingSocket(accountId)),
    login: (init) => void navigations.push(client.session.loginUrl('login', init)),
    signup: (init) => void navigations.push(client.session.loginUrl('signup', init)),
    server: inMemory.controls(navigations, client.session.check),
    close() {
      // Their streams stop first, so that none fails with the error that its connection has ended, in which a test would fail.
      for (const socket of opened) socket.close()
      client.close()
      inMemory.network.set('up')
    },
  }
}
