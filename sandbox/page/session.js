/** The session in the header: who is logged in, until when, and the logout. */
import { client } from './bff.js'
import { $, setText, setUsable } from './dom.js'
import { explain } from './failures.js'
import { clock, duration } from './format.js'
import { dismiss, notice } from './notices.js'

const STATES = { loading: 'Checking session', authenticated: 'Logged in', anonymous: 'Logged out' }
const ENDINGS = {
  logout:
    'You are logged out here, and the server has closed your trading connections. The login provider may still ' +
    'remember you, so that the next login needs no password: on a shared computer, log out there, too.',
  replaced: 'Your session was replaced by a new login.',
  expired: 'Your session has reached its time limit.',
  idle: 'You were logged out because the session was not used.',
  refused: 'Your session has ended, because the trading service no longer accepts the login.',
  revoked: 'The operator has ended your session.',
  gone: 'Your session has ended.',
}
/** Another login of the same browser moves the end of the session by more than this. */
const SAME_MS = 2500

class Session extends EventTarget {
  /** What the page shows: loading, authenticated or anonymous. */
  state = 'loading'
  /** The active session; undefined in other states. */
  #active

  start() {
    client.session.subscribe(() => this.#take())
    setInterval(() => this.#drawCountdown(), 1000)
    $('#logout').addEventListener('click', () => this.#logout())
    for (const link of document.querySelectorAll('a[data-flow]')) {
      link.href = client.session.loginUrl(link.dataset.flow)
    }
    // A page that the back button restores shows no login before it has been checked.
    addEventListener('pageshow', async ({ persisted }) => {
      if (!persisted) return
      this.#set('loading', undefined)
      await client.session.check()
      this.#take()
    })
  }

  #take() {
    const now = client.session.get()
    if (now.status === 'unknown') return
    const active = now.status === 'active' ? now : now.last
    const had = this.#active
    this.#set(active ? 'authenticated' : 'anonymous', active)
    if (now.status === 'unavailable') return this.#unavailable()
    dismiss('session-check')
    if (active) this.#warn(active)
    else if (had) this.#ended(now.reason)
  }

  #unavailable() {
    const text = 'The server cannot tell at the moment whether you are logged in. This page asks again by itself.'
    notice({ key: 'session-check', kind: 'error', text })
  }

  /** Announces the end of the session a minute before. */
  #warn({ expiring, expiresAt }) {
    if (expiring === 'idle') {
      const run = () => client.session.extend().catch((error) => explain(error, 'The session was not extended.'))
      const text = 'You will be logged out within a minute, because the session is not used.'
      notice({ key: 'session', text, action: { label: 'Stay logged in', run } })
    } else if (expiring === 'absolute') {
      notice({ key: 'session', text: `Your session reaches its time limit at ${clock(expiresAt)}.` })
    } else dismiss('session')
  }

  #ended(reason = 'gone') {
    const link = { href: client.session.loginUrl(), label: 'Log in again' }
    notice({ key: 'session', text: ENDINGS[reason] ?? ENDINGS.gone, link })
  }

  async #logout() {
    const button = $('#logout')
    if (button.ariaDisabled === 'true') return
    setUsable(button, false)
    try {
      await client.logout()
      // The button with the focus is gone.
      $('#main').focus()
    } catch (error) {
      await explain(error, 'Logging out did not work, and you may still be logged in.', 'session')
    } finally {
      setUsable(button, true)
    }
  }

  #set(state, active) {
    const isOther = Math.abs((active?.expiresAt ?? 0) - (this.#active?.expiresAt ?? 0)) > SAME_MS
    const changed = state !== this.state || isOther
    this.state = state
    this.#active = active
    const badge = $('#session-state')
    setText(badge, STATES[state])
    badge.dataset.state = state
    this.#drawCountdown()
    if (changed) this.dispatchEvent(new Event('change'))
  }

  #drawCountdown() {
    const { idleExpiresAt, expiresAt } = this.#active ?? {}
    const left = (at) => duration(at - Date.now())
    const text = this.#active ? `idle limit ${left(idleExpiresAt)}, ends in ${left(expiresAt)}` : ''
    setText($('#session-countdown'), text)
  }
}

export const session = new Session()
