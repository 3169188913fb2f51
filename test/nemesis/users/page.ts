import { setTimeout as pause } from 'node:timers/promises'
import { randomFrom } from '../../../sandbox/upstream/market.ts'
import { JarBrowser, type Arrival, type JarCookie } from '../../support/browser/jar-browser.ts'
import { confirmLogout } from '../../support/login/openid-provider.ts'
import { sendTo, type Answer } from '../../support/user.ts'
import type { Fleet, Instance } from '../fleet.ts'
import type { Call, CallKind, Ending } from '../history.ts'
import type { Actor } from '../plan.ts'
import { PartnerLinks } from './partner-links.ts'

/** A page that has no response by then stops waiting. */
const GIVES_UP_MS = 12_000

/** The share of logins among those who have signed up before, and of those who cancel it. */
const LOGS_IN = 0.5
const CANCELS = 0.25
/** Lifetimes of tokens are whole seconds. */
const EARLY_MS = 1500

/** What a page asks for. */
export interface Request {
  readonly kind: CallKind
  readonly method: string
  readonly path: string
  readonly key?: string
  readonly body?: string
}

/** Somebody's browser with a page in it. It notes what it asks for and what it is told. */
export class Page {
  readonly name: string
  readonly fleet: Fleet
  readonly random: () => number
  /** The login whose session the browser has: the grant of the provider. */
  session: string | undefined
  #browser = new JarBrowser()
  /** The last account that it has opened at the provider; '' without one. */
  #email = ''
  /** The cookies of calls while a login is under way: whose session the next ones are is known at its end. */
  #earlier: string | undefined
  #accounts = 0
  readonly #partner: PartnerLinks

  constructor({ name, seed }: Actor, fleet: Fleet) {
    this.name = name
    this.fleet = fleet
    this.random = randomFrom(seed)
    this.#partner = new PartnerLinks(name, () => this.#browser)
  }

  /** The same browser at this moment, as a tab that is restored, or a thief, has it. */
  copy(): Page {
    const copy = new Page({ name: this.name, seed: Math.floor(this.random() * 2 ** 31) }, this.fleet)
    copy.#browser = this.#browser.clone()
    copy.session = this.session
    return copy
  }

  /** One of these. */
  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.random() * items.length)] as Item
  }

  /** An instance, as a balancer without sticky sessions chooses it. */
  get instance(): Instance {
    return this.pick(this.fleet.instances)
  }

  get cookie(): string {
    if (this.#earlier !== undefined) return this.#earlier
    const page = new URL(this.fleet.publicUrl)
    return this.#browser.cookieHeader(page, page)
  }

  /** The cookies that a page of this browser sends. */
  get cookies(): ReadonlyMap<string, JarCookie> {
    return this.#browser.cookies
  }

  /** Logs in through the pages of the provider, or signs up: the first time, and sometimes again as somebody else. */
  async logIn(): Promise<Call> {
    const { kind, path, attribution } = this.#chosenStart()
    const call = this.#note({ kind, method: 'GET', path }, undefined)
    const isCancelled = this.random() < CANCELS
    const replaced = this.#replaced(call.at)
    this.#earlier = this.cookie
    const cookie = this.#sessionCookie
    const stop = new AbortController()
    const arrived = this.#navigate(kind, path, isCancelled, stop.signal).catch(() => undefined)
    const arrival = await Promise.race([arrived, pause(GIVES_UP_MS, undefined, { ref: false })])
    // Otherwise a late answer would still change the cookies, which belong to the next navigation by then.
    stop.abort()
    const { observer, provider } = this.fleet
    call.until = observer.now()
    const parameters = arrival?.hops.map(({ url }) => url.searchParams) ?? []
    const state = parameters.find((each) => each.has('code_challenge'))?.get('state')
    if (state !== undefined && state !== null)
      observer.history.starts.push({ user: this.name, kind, attribution, state })
    const code = parameters.map((each) => each.get('code')).find((each) => each !== null) ?? undefined
    call.requestId =
      arrival?.hops.find(({ url }) => url.pathname === '/auth/callback')?.headers.get('x-request-id') ?? undefined
    const failed = arrival?.url.searchParams.get('auth_error')
    const isDone = failed === null && code !== undefined
    this.#earlier = undefined
    if (!isDone && this.#sessionCookie !== cookie) this.session = undefined
    if (isDone && replaced !== undefined) replaced.confirmedAt = call.until
    if (isDone) this.#begin((call.began = provider.grantOf(code)), call.at)
    const isDenied = isCancelled && failed === 'access_denied'
    const refused = /<dd>(shutting_down)</.exec(arrival?.body ?? '')?.[1]
    call.result = isDone || isDenied ? 'ok' : (failed ?? refused ?? (arrival === undefined ? 'no_answer' : 'no_code'))
    this.#partner.navigated(arrival, { isSignUp: kind === 'signup', isDone })
    return call
  }

  get #sessionCookie(): string | undefined {
    return this.#browser.named('__Host-session')[0]?.value
  }

  /** A login ends the session that the browser has. */
  #replaced(askedAt: number): Ending | undefined {
    if (this.session === undefined) return undefined
    const ending: Ending = { user: this.name, session: this.session, by: 'login', askedAt, confirmedAt: undefined }
    this.fleet.observer.history.endings.push(ending)
    return ending
  }

  /** Has a session from now on. Without a refresh token, it ends with its access token. */
  #begin(session: string | undefined, at: number): void {
    const { plan, observer } = this.fleet
    this.session = session
    if (session === undefined || plan.refreshTokens) return
    const askedAt = at + plan.accessTokenSeconds * 1000 - EARLY_MS
    observer.history.endings.push({ user: this.name, session, by: 'limit', askedAt, confirmedAt: undefined })
  }

  #chosenStart(): { kind: 'login' | 'signup'; path: string; attribution: string } {
    const partner = this.#partner
    // Whoever has cancelled a sign-up goes on without the link, as a rule.
    const isPlain = this.random() < (partner.remembered === '' ? 0.1 : 0.8)
    if (partner.remembered === '' && this.#email !== '' && this.random() < LOGS_IN)
      return { kind: 'login', path: '/auth/login', attribution: '' }
    if (isPlain) return { kind: 'signup', path: '/auth/signup', attribution: partner.remembered }
    const attribution = partner.nextLink(this.random)
    return { kind: 'signup', path: `/auth/signup?${attribution}`, attribution }
  }

  async #navigate(kind: 'login' | 'signup', path: string, isCancelled: boolean, signal: AbortSignal): Promise<Arrival> {
    const arrival = await this.#browser.navigate(this.fleet.publicUrl + path, { from: 'address bar', signal })
    // The provider knows who has logged in there before, and asks nothing.
    if (arrival.url.origin !== new URL(this.fleet.provider.url).origin) return arrival
    const email = kind === 'signup' ? `${this.name}-${++this.#accounts}@example.test` : this.#email
    const fields = { email, password: 'any', action: isCancelled ? 'cancel' : 'continue' }
    if (!isCancelled) this.#email = email
    const end = await this.#browser.submit(arrival, fields, signal)
    return { ...end, hops: arrival.hops.concat(end.hops) }
  }

  /** Ends what the provider knows of its user. The provider tells the server before it answers. */
  async leaveProvider(): Promise<void> {
    const question = await this.#browser.navigate(`${this.fleet.provider.url}/session/end`, { from: 'address bar' })
    await confirmLogout(this.#browser, question)
  }

  /** A call with the session. Without a response in time it ends as `no_answer`. */
  async ask(request: Request, instance = this.instance): Promise<Call> {
    const call = this.#note(request, instance)
    const { method, path, key, body } = request
    const headers = { cookie: this.cookie, 'x-csrf': '1', ...(key !== undefined && { 'idempotency-key': key }) }
    const sent = sendTo(instance.links.browsers.port, method, path, { headers, ...(body !== undefined && { body }) })
    sent.catch(() => undefined)
    const answer = await Promise.race([sent.catch(() => undefined), pause(GIVES_UP_MS, undefined, { ref: false })])
    call.until = this.fleet.observer.now()
    call.result = answer === undefined ? 'no_answer' : resultOf(answer)
    call.body = answer?.text ?? ''
    call.requestId = answer?.headers['x-request-id']?.toString()
    call.isReplayed = answer?.headers['idempotency-replayed'] !== undefined
    if (call.result === 'session_expired' || call.result === 'login_required') this.forget(call.session)
    return call
  }

  /** Its session has ended, unless it has another one by now. */
  forget(session: string | undefined): void {
    if (this.session === session) this.session = undefined
  }

  #note({ kind, path, key }: Request, instance: Instance | undefined): Call {
    const call: Call = {
      user: this.name,
      session: this.session,
      instance: instance?.at,
      kind,
      path,
      key,
      at: this.fleet.observer.now(),
      until: undefined,
      result: '',
      body: '',
      began: undefined,
      requestId: undefined,
      isReplayed: false,
    }
    this.fleet.observer.history.calls.push(call)
    return call
  }
}

function resultOf(answer: Answer): string {
  const isProblem = answer.headers['content-type']?.startsWith('application/problem') === true
  if (isProblem) return String(answer.json['code'])
  return answer.status < 400 ? 'ok' : String(answer.status)
}
