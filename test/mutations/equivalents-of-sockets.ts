import { inFile, type Equivalent } from './equivalent.ts'

/** Slips in what keeps sockets and sessions, here and in the browser package. */
export const OF_SOCKETS: readonly Equivalent[] = [
  ...inFile('client/src/core/sockets/exchange.ts', [
    [
      "if (onAbort) signal?.removeEventListener('abort', onAbort)",
      'true',
      'No listener is removed where there is none.',
    ],
  ]),
  ...inFile('client/src/core/sockets/streams.ts', [
    [
      'const key = JSON.stringify(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)))',
      'a <= b',
      'No two members of an object have the same name.',
    ],
    ['if (number > 0) this.#carriers[number] = undefined', 'number >= 0', 'Its callers leave the first link out.'],
  ]),
  ...inFile('client/src/orders/remembered-key.ts', [
    ['} catch {', '{}', 'Without a value it returns none, either.'],
    ['if (navigator?.locks) {', 'navigator.locks', 'Where it fails, nobody has acted yet, and it acts without a lock.'],
  ]),
  ...inFile('client/src/orders/search.ts', [
    [
      '#period: Period = { from: -Infinity, to: Infinity, likely: [] }',
      '["Stryker was here"]',
      'No time is within a text, so none is likely.',
    ],
    [
      'if (!this.#hasLooked && this.#reads + 2 <= MAX_READS) {',
      'this.#reads + 2 < MAX_READS',
      'The first two reads are made together, so there is never one alone.',
    ],
  ]),
  ...inFile('src/sockets/feed/streams/stream.ts', [
    ["case 'over':", '""', 'It is the last case, and has nothing to do.'],
    ['from?.leave(this)', 'from.leave', 'It comes from a refusal, which upstream has sent on a link.'],
  ]),
  ...inFile('src/sockets/relay/otp.ts', [
    [
      'if (this.#asking.acquire(subject, MAX_ASKING)) return true',
      'false',
      'A shortcut: waitFor() takes a place that is free, too.',
    ],
    [
      "const close = fromStatus(status, typeof retryAfter === 'string' ? retryAfter : undefined)",
      'true',
      'Several values of a header are neither a number nor a date.',
    ],
    ['} catch {', '{}', 'A function that returns nothing returns undefined.'],
  ]),
  ...inFile('src/sockets/relay/relay.ts', [
    [
      "const passage = refusal === undefined ? 'passes' : (gate?.judge(message, isBinary) ?? 'passes')",
      '""',
      'Where there is no gate, no orders are refused.',
    ],
    [
      "const passage = refusal === undefined ? 'passes' : (gate?.judge(message, isBinary) ?? 'passes')",
      'gate.judge',
      'Where there is no gate, no orders are refused.',
    ],
    ['const held = this.#held ?? []', '["Stryker was here"]', 'All callers have messages held, or none in a list.'],
    [
      'if (this.#ended || !this.#upstream.isPaused) return',
      'false',
      'While upstream is read, there is no wait to end and nothing to resume.',
    ],
  ]),
  ...inFile('src/sockets/relay/relay-routes.ts', [
    ["const { accountId = '' } = params as { accountId?: string }", '"Stryker was here!"', 'No account has this id.'],
    [
      "const status = outcome.is === 'url' ? 200 : outcome.is === 'refused' ? outcome.status : undefined",
      'true',
      'Only a refusal has a status.',
    ],
    [
      'if (status !== undefined && isTokenAccepted(status)) deps.sessions.noteAccepted(session)',
      'true',
      'No status is no accepted one.',
    ],
    ['if (current === undefined) opened?.drop?.()', 'opened?.drop()', 'Relays have it.'],
  ]),
  ...inFile('src/sockets/session/session-socket.ts', [
    [
      'if (pauseIn(options.controls?.stateFor(this.#session)) !== this.#pause) this.#update(this.#session)',
      'options.controls.stateFor',
      'The controls call this, so there are some.',
    ],
    ['this.#session = session', ';', 'In the constructor, #update() follows; that of #update() is noticed.'],
  ]),
  ...inFile('src/upstream/budget/upstream-budget.ts', [
    [
      "const isShort = this.#holder.lease.free('orders') < this.#terms.readyOrders && emptyUntil > now",
      'emptyUntil >= now',
      'The reply that has just been noted lies ahead, or there is none and the ledger is away, where this is not read.',
    ],
  ]),
  ...inFile(
    'src/store/servers/link-health.ts',
    ['true', 'now - this.#aliveAt >= MAX_SILENCE_MS', 'now + this.#aliveAt'].map(
      (slip) =>
        [
          'if (now - this.#aliveAt > MAX_SILENCE_MS) setImmediate(() => this.#judge(now))',
          slip,
          'The silence is measured again before it is judged.',
        ] as const,
    ),
  ),
  ...inFile('src/store/servers/link-health.ts', [
    [
      "if (this.#downSince === undefined && silentMs > MAX_SILENCE_MS) this.noteLoss('silence')",
      'silentMs >= MAX_SILENCE_MS',
      'It was longer at the look, or a sign of life has come since.',
    ],
  ]),
  ...inFile('src/sockets/feed/streams/tick-delivery.ts', [
    [
      'if (this.#newest === undefined || !this.#waiting.delete(subscription)) return',
      'false',
      'Nobody is offered a tick before there is one, and all who wait are let go with the newest.',
    ],
  ]),
  ...inFile('src/sockets/feed/streams/forget.ts', [
    ['if (waiting.size === 0) return proceed()', 'true', 'While others are waited for, this only looks once more.'],
  ]),
  ...inFile('src/sockets/feed/streams/stream.ts', [
    ['this.link?.add(this)', 'this.link.add', 'A stream that was asked for has a link.'],
  ]),
  ...inFile('src/sockets/feed/streams/streams.ts', [
    [
      'if (this.#byIdentity.get(identity) === stream) this.#byIdentity.delete(identity)',
      'true',
      'A stream ends once, and only then another one takes its place.',
    ],
    ['if (list?.isOver === true) return', 'false', 'No symbol of a list is refused before all of them are asked for.'],
    ['earlier?.afterAnswer((isServed) => {', 'earlier.afterAnswer', 'It is one of the subscriptions of the browser.'],
  ]),
]
