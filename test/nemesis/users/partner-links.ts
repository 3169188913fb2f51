import type { Arrival, JarBrowser } from '../../support/browser/jar-browser.ts'
import { attributionOf } from '../attribution.ts'

const COOKIE = '__Host-attribution'

/** The links of partners by which somebody comes, and the one that their browser should remember. */
export class PartnerLinks {
  readonly #user: string
  readonly #browser: () => JarBrowser
  /** The values of the last link, while its sign-up is not completed; '' without one. */
  remembered = ''
  #last = ''
  #cookie: string | undefined
  #count = 0

  constructor(user: string, browser: () => JarBrowser) {
    this.#user = user
    this.#browser = browser
  }

  /** A complete link that nobody has had before. */
  nextLink(random: () => number): string {
    const digits = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16)).join('')
    const sidc = digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
    const campaign = `${this.#user}-${++this.#count}`
    this.#cookie = this.#inBrowser
    this.#last = attributionOf({ sidc, utm_source: 'nemesis', utm_medium: 'affiliate', utm_campaign: campaign })
    return this.#last
  }

  /** A navigation is over. Without an arrival it was lost on the way, and only the browser knows how far it had come. */
  navigated(arrival: Arrival | undefined, { isSignUp, isDone }: { isSignUp: boolean; isDone: boolean }): void {
    const cookie = this.#inBrowser
    // Whoever was told that the server is restarting still has the link, and opens it again.
    const isAnswered = arrival === undefined ? cookie !== this.#cookie : arrival.hops[0]?.status !== 503
    if (isSignUp && isDone) this.remembered = ''
    else if (this.#last !== '' && isAnswered) this.remembered = this.#last
    // The response of a completed sign-up has come, and what came after it was lost.
    if (arrival === undefined && cookie === undefined) this.remembered = ''
    this.#last = ''
  }

  get #inBrowser(): string | undefined {
    return this.#browser().named(COOKIE)[0]?.value
  }
}
