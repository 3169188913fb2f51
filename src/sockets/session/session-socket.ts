import { Window } from '../../time/window.ts'
import type { Controls } from '../../controls/controls.ts'
import type { Session, Sessions, SessionState } from '../../sessions/index.ts'
import { BROWSER, CLOSE, POLICY_VIOLATION, type CloseStatus } from '../close-codes.ts'
import { onTooLong } from '../receiver.ts'
import { SocketEnd, type OpenSocket } from '../socket-end.ts'
import type { WaitingBytes } from '../waiting-bytes.ts'
import { storeNow } from '../../time/store-time.ts'

/** How long before the end of a session its page is warned. */
const WARNING_MS = 60_000
const SECOND = 1000
/** The longest delay of a Node timer that does not overflow. */
const MAX_TIMER_MS = 2 ** 31 - 1
/** A page that does not read this little is not there. */
const MAX_BUFFERED_BYTES = 65_536

/** A page has nothing to say. More messages in a minute than this, or a larger one, end its socket. */
const MAX_MESSAGES = 10
const MAX_MESSAGE_BYTES = 1024

interface SessionSocketOptions {
  readonly sessions: Sessions
  /** Absent where operators have no token. */
  readonly controls?: Pick<Controls, 'stateFor' | 'onNotice' | 'onPauses'> | undefined
  readonly waiting: WaitingBytes
  /** Called once, when the socket ends. */
  readonly onEnd: (close: CloseStatus) => void
}

/**
 * An open session socket. It sends a page the state of its session, pauses of its orders included, and the notice of the operator
 * whenever these change. It warns before the session expires, and says why it has ended (docs/reference.md, The session socket).
 * Being open is no use of the session.
 */
export class SessionSocket {
  readonly #end: SocketEnd
  readonly #options: SessionSocketOptions
  readonly #messages = new Window(60_000)
  #unwatch = (): void => undefined
  readonly #endControls: readonly ((() => void) | undefined)[] = []
  #session: Session
  /** The pause of orders that the page knows of, as a text. */
  #pause: string | undefined
  #warning: NodeJS.Timeout | undefined
  #isOver = false

  constructor(browser: OpenSocket, session: Session, options: SessionSocketOptions) {
    this.#session = session
    this.#options = options
    this.#end = new SocketEnd(browser, BROWSER, {
      message: ({ length }) => {
        if (length > MAX_MESSAGE_BYTES || !this.#messages.allows(MAX_MESSAGES)) this.end(POLICY_VIOLATION)
      },
      ended: ({ own }) => this.end(own),
      waiting: options.waiting,
    })
    onTooLong(browser.socket, () => this.end(POLICY_VIOLATION))
    this.#update(session)
    if (this.#isOver) return
    this.#endControls = [
      options.controls?.onNotice(() => {
        this.#send({ event: 'notice', notice: options.controls?.stateFor(undefined).notice ?? null })
      }),
      options.controls?.onPauses(() => {
        if (pauseIn(options.controls?.stateFor(this.#session)) !== this.#pause) this.#update(this.#session)
      }),
    ]
    this.#unwatch = options.sessions.watch(session, {
      isUse: false,
      onChange: (changed) => this.#update(changed),
      onEnd: (reason) => {
        if (reason === 'storeLost') return this.end(CLOSE.storeDown)
        this.#send({ event: 'ended', reason })
        this.end(CLOSE.sessionExpired)
      },
    })
  }

  get waitingBytes(): number {
    return this.#end.heldBytes
  }

  end(close: CloseStatus): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#warning)
    this.#unwatch()
    for (const end of this.#endControls) end?.()
    try {
      this.#end.close(close)
    } finally {
      this.#options.onEnd(close)
    }
  }

  #update(session: Session): void {
    this.#session = session
    const { sessions, controls } = this.#options
    const state = controls?.stateFor(session)
    this.#pause = pauseIn(state)
    this.#send({ event: 'session', ...sessions.state(session), ...state })
    this.#scheduleWarning()
  }

  #scheduleWarning(): void {
    clearTimeout(this.#warning)
    // Near the absolute limit, the idle one moves with the clock, so a warning that was due may be due later.
    const next = (): void => (this.#msToWarning > 0 ? this.#scheduleWarning() : void this.#warn())
    this.#warning = setTimeout(next, Math.min(Math.max(this.#msToWarning, 0), MAX_TIMER_MS)).unref()
  }

  get #msToWarning(): number {
    return SECOND * nearerEnd(this.#options.sessions.state(this.#session)).at - WARNING_MS - storeNow()
  }

  /** Warns of the nearer end, unless the session was used on another instance in the meantime. */
  async #warn(): Promise<void> {
    const before = this.#session
    // Nothing would handle a rejection; the warning is right unless the read says otherwise.
    const found = await this.#options.sessions.reread(before).catch(() => undefined)
    // The read has updated the session if its limits had changed.
    if (this.#isOver || found?.is === 'none' || this.#session !== before) return
    const state = this.#options.sessions.state(before)
    this.#send({ event: 'expiring', ...nearerEnd(state), now: state.now })
  }

  #send(message: object): void {
    if (this.#isOver) return
    this.#end.send(Buffer.from(JSON.stringify(message)), false, 0)
    if (this.#end.bufferedBytes > MAX_BUFFERED_BYTES) this.end(CLOSE.slowConsumer)
  }
}

function pauseIn(state: ReturnType<Controls['stateFor']> | undefined): string | undefined {
  return JSON.stringify(state?.orders_paused)
}

function nearerEnd(state: SessionState): { readonly at: number; readonly why: 'idle' | 'absolute' } {
  if (!state.authenticated) return { at: state.now, why: 'absolute' }
  const { expires_at: absolute, idle_expires_at: idle } = state
  return idle < absolute ? { at: idle, why: 'idle' } : { at: absolute, why: 'absolute' }
}
