import { setTimeout as pause } from 'node:timers/promises'
import { randomFrom } from '../../../sandbox/upstream/market.ts'
import type { ServerOptions } from '../../../client/dist/client.js'
import { JarBrowser, type Arrival } from '../../support/browser/jar-browser.ts'
import { pageOptions } from '../../support/client/page-client.ts'
import { sendTo, type Answer } from '../../support/user.ts'
import type { Fleet, Instance } from '../fleet.ts'
import type { Call, CallKind } from '../history.ts'
import type { Actor } from '../plan.ts'

/** A page that has no response by then stops waiting. */
const GIVES_UP_MS = 12_000

const PARTNER = 'sidc=0f8fad5b-d9cb-469f-a165-70867728950e&utm_source=partner&utm_medium=affiliate&utm_campaign=nemesis'

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
  #isSignedUp = false

  constructor({ name, seed }: Actor, fleet: Fleet) {
    this.name = name
    this.fleet = fleet
    this.random = randomFrom(seed)
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
    const page = new URL(this.fleet.publicUrl)
    return this.#browser.cookieHeader(page, page)
  }

  /** How the browser package reaches the server from this page. */
  get options(): ServerOptions {
    return pageOptions(this.#browser, this.fleet.publicUrl, this.fleet.publicUrl)
  }

  /** Logs in through the pages of the provider. The first time that is a sign-up, by the link of a partner. */
  async logIn(): Promise<Call> {
    const kind = this.#isSignedUp ? 'login' : 'signup'
    const path = this.#isSignedUp ? '/auth/login' : `/auth/signup?${PARTNER}`
    const call = this.#note({ kind, method: 'GET', path }, undefined)
    const arrived = this.#navigate(path).catch(() => undefined)
    const arrival = await Promise.race([arrived, pause(GIVES_UP_MS, undefined, { ref: false })])
    call.until = this.fleet.observer.now()
    const code = arrival?.hops.map(({ url }) => url.searchParams.get('code')).find((each) => each !== null)
    const failed = arrival?.url.searchParams.get('auth_error')
    call.result = arrival === undefined ? 'no_answer' : (failed ?? (code === undefined ? 'no_code' : 'ok'))
    if (call.result === 'ok') this.session = this.fleet.provider.grantOf(code ?? '')
    return call
  }

  async #navigate(path: string): Promise<Arrival> {
    const arrival = await this.#browser.navigate(this.fleet.publicUrl + path, { from: 'address bar' })
    // The provider knows who has logged in there before, and asks nothing.
    if (arrival.url.origin !== new URL(this.fleet.provider.url).origin) return arrival
    this.#isSignedUp = true
    return this.#browser.submit(arrival, { email: `${this.name}@example.test`, password: 'any', action: 'continue' })
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
