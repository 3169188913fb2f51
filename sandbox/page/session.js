/** The session in the header: who is logged in, until when, where else, and the logout. */
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
class Session extends EventTarget {
  /** What the page shows: loading, authenticated or anonymous. */
  state = 'loading'
  /** The active session; undefined in other states. */
  #active

  /** Tells the session that the page shows from every other; undefined without one. */
  get tag() {
    return this.#active?.session
  }

  /** Whether the server knows whose session it is. */
  get isKnown() {
    return this.#active?.subject !== undefined
  }

  /** What the operator says of a pause of the user's orders; undefined where there is none. Tells of changes as `pause`. */
  get ordersPaused() {
    return this.#active?.ordersPaused
  }

  start() {
    client.session.subscribe((isOther) => this.#take(isOther))
    setInterval(() => this.#drawCountdown(), 1000)
    $('#logout').addEventListener('click', ({ target }) => this.#logout(target))
    $('#logout-everywhere').addEventListener('click', ({ target }) => this.#logout(target, { everywhere: true }))
    // The user looks at the page again.
    document.addEventListener('visibilitychange', () => this.#countOthers())
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

  /** @param isOther true if another session has begun, perhaps of another user: then nothing of the one before may stay */
  #take(isOther = false) {
    const now = client.session.get()
    if (now.status === 'unknown') return
    const active = now.status === 'active' ? now : now.last
    const had = this.#active
    this.#set(active ? 'authenticated' : 'anonymous', active, isOther)
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

  /** @param options - those of the client's logout */
  async #logout(button, options) {
    if (button.ariaDisabled === 'true') return
    setUsable(button, false)
    try {
      await client.logout(options)
      if (options) notice({ key: 'everywhere', text: 'You are logged out in all browsers.', brief: true })
      // The button with the focus is gone.
      $('#main').focus()
    } catch (error) {
      if (error.problem?.code === 'subject_unknown') {
        const text = 'The server does not know whose session this was, so you may still be logged in elsewhere.'
        notice({ key: 'everywhere', kind: 'error', text })
      } else await explain(error, 'Logging out did not work, and you may still be logged in.', 'session')
    } finally {
      setUsable(button, true)
    }
  }

  #set(state, active, isOther = false) {
    const changed = state !== this.state || isOther
    const pauseBefore = JSON.stringify(this.ordersPaused)
    this.state = state
    this.#active = active
    if (JSON.stringify(this.ordersPaused) !== pauseBefore) this.dispatchEvent(new Event('pause'))
    const badge = $('#session-state')
    setText(badge, STATES[state])
    badge.dataset.state = state
    this.#drawCountdown()
    // Only the sessions of a known user can be found.
    $('#logout-everywhere').hidden = !active?.subject
    if (!changed) return
    this.#greet()
    this.#countOthers()
    this.dispatchEvent(new Event('change'))
  }

  /** Greets the user by the name that the trading service knows. Without a name, nobody is greeted. */
  async #greet() {
    const session = this.#active
    const greeting = $('#greeting')
    greeting.hidden = true
    if (!session) return
    const response = await client.api('/account/v1/nickname').catch(() => undefined)
    const { data } = (await response?.json().catch(() => undefined)) ?? {}
    // Meanwhile another session may have begun.
    if (this.#active?.session !== session.session || typeof data?.nickname !== 'string') return
    setText(greeting, `Hello, ${data.nickname}`)
    greeting.title = session.subject ?? ''
    greeting.hidden = false
  }

  /** Shows in how many other browsers the user is logged in. The server counts only when it is asked. */
  async #countOthers() {
    const session = this.#active
    const others = $('#other-sessions')
    if (!session?.subject) others.hidden = true
    else if (!document.hidden) {
      const response = await fetch('/auth/session?others=true').catch(() => undefined)
      const body = response?.ok ? await response.json().catch(() => undefined) : undefined
      // Meanwhile the session may have ended, or another may have begun.
      if (this.#active?.session !== session.session) return
      this.showOthers(body?.other_sessions ?? 0)
    }
  }

  showOthers(count) {
    const others = $('#other-sessions')
    others.hidden = count === 0
    setText(others, count === 1 ? '1 other session' : `${count} other sessions`)
  }

  #drawCountdown() {
    setText($('#session-countdown'), this.#active ? endInWords(this.#active) : '')
  }
}

/** One clock, of the limit that comes first. Use of the session moves that of the idle time. */
function endInWords({ idleExpiresAt, expiresAt }) {
  const left = (at) => duration(at - Date.now())
  if (idleExpiresAt >= expiresAt) return `Ends in ${left(expiresAt)}`
  return `Ends in ${left(idleExpiresAt)} if unused, else at ${clock(expiresAt).slice(0, 5)}`
}

export const session = new Session()
