import type { Envelope } from '../sessions/index.ts'
import { isOfOneMaster, type StoreData, type StoreHealth } from '../store/store.ts'
import { finishedLast, MAX_PER_BROWSER, type LoginCookie } from './login-cookies.ts'
import { keyOf, openLogin, type LoginState } from './login-record.ts'

/** The session of the request that starts the login, and the one that this browser's last login created. */
const MAX_PREVIOUS = 2
/** Together with those of logins whose cookies go. So many login cookies of a browser are read. */
const MAX_NOTED = 30

/** A login that this browser has started, by its cookie. */
interface BrowserLogin {
  readonly key: string
  readonly cookie: LoginCookie
  /** `lost`: the record is gone; `unreadable`: this instance cannot decrypt it, but another one may; `unasked`: not looked up. */
  readonly loginState: LoginState | { readonly is: 'lost' | 'unreadable' | 'unasked' }
}

/** The remains of a finished or failed login in the browser and in the store, or only a session that a login has noted. */
export interface SettledLogin {
  /**
   * Store key of the record of a finished login. A failed one has nothing that must end, and expires by itself: to remove
   * ten of them would cost a logout, which a stranger may send, ten commands.
   */
  readonly key?: string
  readonly cookieName?: string
  /** Store key and cookie value of the session that it created. */
  readonly session?: string
  readonly cookieValue?: string
}

/**
 * Looks up the logins of a browser by their cookies, oldest first. Tabs that start logins at the same moment may leave more
 * than ten. They are looked up ten at a time, first those whose cookies say that they have finished, then the newest, until none
 * of ten has finished: a stranger may get as many cookies, but only a user finishes a login.
 * @param needsAll false if one may count as not looked up while its master of a Cluster is gone
 * @throws StoreUnavailable
 */
export async function browserLogins(
  cookies: readonly LoginCookie[],
  store: StoreData & StoreHealth,
  envelope: Envelope,
  needsAll = false,
): Promise<BrowserLogin[]> {
  const logins: BrowserLogin[] = []
  const inTurn = finishedLast(cookies)
  let mayAsk = true
  for (let end = inTurn.length; end > 0; end -= MAX_PER_BROWSER) {
    const batch = inTurn.slice(Math.max(0, end - MAX_PER_BROWSER), end)
    const asked: readonly BrowserLogin[] = mayAsk ? await lookUp(batch, store, envelope, needsAll) : batch.map(unasked)
    logins.unshift(...asked)
    mayAsk &&= asked.some(({ loginState }) => loginState.is === 'finished')
  }
  return logins.sort((one, other) => one.cookie.startedAt - other.cookie.startedAt)
}

async function lookUp(
  cookies: readonly LoginCookie[],
  store: StoreData & StoreHealth,
  envelope: Envelope,
  needsAll: boolean,
): Promise<BrowserLogin[]> {
  const named = cookies.map((cookie) => ({ cookie, key: keyOf(cookie) }))
  try {
    const texts = await store.readMany(named.map(({ key }) => key))
    return named.map(({ cookie, key }, index) => {
      const text = texts[index]
      if (text === undefined) return { key, cookie, loginState: { is: 'lost' } }
      return { key, cookie, loginState: openLogin(envelope, cookie, text) ?? { is: 'unreadable' } }
    })
  } catch (error) {
    if (needsAll || !isOfOneMaster(error, store)) throw error
    if (cookies.length === 1) return cookies.map(unasked)
    return (await Promise.all(cookies.map((cookie) => lookUp([cookie], store, envelope, needsAll)))).flat()
  }
}

function unasked(cookie: LoginCookie): BrowserLogin {
  return { key: keyOf(cookie), cookie, loginState: { is: 'unasked' } }
}

/** The finished, failed and lost ones among the logins of a browser, and the sessions that only other logins have noted. */
export function settledOf(logins: readonly BrowserLogin[]): SettledLogin[] {
  const settled = logins.flatMap(({ key, cookie: { name: cookieName }, loginState }): SettledLogin | [] => {
    if (isInUse(loginState)) return []
    if (loginState.is !== 'finished') return { cookieName }
    return { key, cookieName, session: loginState.session, cookieValue: loginState.cookieValue }
  })
  const noted = [...sessionsOf(logins)].filter(([, cookieValue]) => cookieValue === undefined)
  return [...settled, ...noted.map(([session]) => ({ session }))]
}

/** The sessions that logins have made, then those that they were to replace, as {@link LoginTransactions.otherSessions} has them. */
export function sessionsOf(logins: readonly BrowserLogin[]): ReadonlyMap<string, string | undefined> {
  const made = logins.flatMap(({ loginState }) => (loginState.is === 'finished' ? loginState : []))
  const sessions = new Map<string, string | undefined>(made.map(({ session, cookieValue }) => [session, cookieValue]))
  for (const key of logins.flatMap(notedBy)) if (!sessions.has(key)) sessions.set(key, undefined)
  return sessions
}

/** The sessions that a login was to replace, and has not replaced. The cookies of the logins that made them may be gone. */
function notedBy({ loginState }: BrowserLogin): readonly string[] {
  return 'previous' in loginState ? (loginState.previous ?? []) : []
}

/**
 * Store keys of the sessions that a new login replaces: that of the request which starts it, and that of this browser's
 * last finished login, whose strict cookie is not sent if the request comes from a link on another site. What
 * other logins have noted comes last; without a bound, that would make the list grow with every start.
 * @param stale names of the cookies that go: without a note, the sessions of their logins would not be found any more
 */
export function previousSessions(
  current: string | undefined,
  earlier: readonly BrowserLogin[],
  stale: readonly string[],
): readonly string[] {
  const keys = [current, ...sessionsOf(earlier.toReversed()).keys()].filter((key) => key !== undefined)
  const latest = [...new Set(keys)].slice(0, MAX_PREVIOUS)
  const leaving = sessionsOf(earlier.filter(({ cookie }) => stale.includes(cookie.name))).keys()
  return [...new Set([...latest, ...leaving])].slice(0, MAX_NOTED)
}

/** Names of the cookies to delete before one more is set: the oldest, and cookies of logins in use last. */
export function surplusOf(logins: readonly BrowserLogin[]): string[] {
  const unused = logins.filter(({ loginState }) => !isInUse(loginState))
  const inUse = logins.filter(({ loginState }) => isInUse(loginState))
  const surplus = Math.max(0, logins.length + 1 - MAX_PER_BROWSER)
  return [...unused, ...inUse].slice(0, surplus).map(({ cookie }) => cookie.name)
}

/** Whether a login may still be completed. One that cannot be decrypted here may still be completed by another instance. */
function isInUse({ is }: BrowserLogin['loginState']): boolean {
  return is === 'pending' || is === 'running' || is === 'unreadable' || is === 'unasked'
}
