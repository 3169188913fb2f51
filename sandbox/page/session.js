/**
 * The session as the page knows it, from GET /auth/session alone. The page requests it at the start, when it becomes
 * visible or is restored, shortly after the session should have ended, and otherwise once a minute while visible.
 */
import { ApiError, call, explain, whenUnauthorized } from './rest.js'
import { $, duration, setText } from './dom.js'
import { showSessionAnswer } from './inspect.js'
import { dismiss, notice } from './notices.js'

const POLL_MS = 60_000
const PAST_END_MS = 1500
const FRESH_MS = 5000

class Session extends EventTarget {
  state = 'loading'
  #answer
  #clockOffset = 0
  #running
  #checkedAt = 0
  #timer
  #overdue = false

  start() {
    whenUnauthorized(() => this.check())
    setInterval(() => this.#drawCountdown(), 1000)
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden && (this.#overdue || Date.now() - this.#checkedAt > FRESH_MS)) this.check()
    })
    $('#logout').addEventListener('click', () => this.logout())
    return this.check()
  }

  /** A caller during a running check gets the result of that check. */
  check() {
    this.#running ??= this.#ask().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Forgets the session until the next check, since a restored page may show outdated data. */
  forget() {
    this.#set('loading', undefined)
  }

  async logout() {
    $('#logout').disabled = true
    try {
      await this.#running
      await call('POST', '/auth/logout')
      this.#set('anonymous', undefined)
      notice({
        key: 'session',
        text: 'You are logged out, and the server has closed your trading connections.',
        brief: true,
      })
    } catch (error) {
      explain(error, 'Logging out did not work.', 'session')
      if (error.status > 0) return
    } finally {
      $('#logout').disabled = false
    }
    await this.#running
    await this.check()
  }

  async #ask() {
    clearTimeout(this.#timer)
    this.#overdue = false
    this.#checkedAt = Date.now()
    try {
      const answer = await call('GET', '/auth/session')
      dismiss('session-check')
      this.#clockOffset = answer.now * 1000 - Date.now()
      this.#take(answer)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (this.state === 'loading') this.#set('anonymous', undefined)
      notice({
        key: 'session-check',
        kind: 'error',
        text: `The session could not be checked. ${error.message}`,
        requestId: error.requestId,
      })
    }
    this.#timer = setTimeout(() => this.#due(), this.#nextCheck())
    return this.state
  }

  /** A hidden page checks the session only when it is shown again. */
  #due() {
    if (document.hidden) this.#overdue = true
    else this.check()
  }

  #take(answer) {
    showSessionAnswer(answer)
    const had = this.state === 'authenticated'
    const replaced = had && Math.abs(this.#answer.expires_at - answer.expires_at) > 2
    this.#set(answer.authenticated ? 'authenticated' : 'anonymous', answer, replaced)
    if (had && !answer.authenticated) {
      const link = { href: '/auth/login?return_to=/', label: 'Log in again' }
      notice({ key: 'session', kind: 'info', text: 'Your session has ended.', link })
    }
  }

  #set(state, answer, replaced = false) {
    const changed = state !== this.state || replaced
    this.state = state
    this.#answer = answer
    const badge = $('#session-state')
    setText(badge, { loading: 'Checking session', authenticated: 'Logged in', anonymous: 'Logged out' }[state])
    badge.dataset.state = state
    this.#drawCountdown()
    if (changed) this.dispatchEvent(new Event('change'))
  }

  /** Milliseconds until the session ends, by the server's clock. */
  #left(name) {
    return this.#answer[name] * 1000 - (Date.now() + this.#clockOffset)
  }

  #nextCheck() {
    if (this.state !== 'authenticated') return POLL_MS
    const left = Math.min(this.#left('expires_at'), this.#left('idle_expires_at'))
    return left > 0 ? Math.min(POLL_MS, left + PAST_END_MS) : POLL_MS / 2
  }

  #drawCountdown() {
    const known = this.state === 'authenticated'
    const text = known
      ? `idle limit ${duration(this.#left('idle_expires_at'))}, ends in ${duration(this.#left('expires_at'))}`
      : ''
    setText($('#session-countdown'), text)
  }
}

export const session = new Session()
