import { EventEmitter } from 'node:events'
import type { Test } from 'tap'
import type { Dispatcher } from 'undici'
import { Forwarding, type ForwardRequest } from '../../../src/upstream/forwarding.ts'
import { ManualTimers } from '../time/manual-timers.ts'

/** The browser of a forwarding. */
class Response extends EventEmitter {
  readonly destroyed = false
  /** Whether it does not read. */
  isFull = false
  readonly #log: (...entry: unknown[]) => void

  constructor(log: (...entry: unknown[]) => void) {
    super()
    this.#log = log
  }

  write(chunk: Buffer): boolean {
    this.#log('write', String(chunk))
    return !this.isFull
  }

  end(chunk?: Buffer | string, ...encoding: string[]): void {
    this.#log('end', ...(chunk === undefined ? [] : [String(chunk)]), ...encoding)
  }
}

/** A forwarding between a browser and an undici that a test plays; an order unless told otherwise. */
export class Forwarded {
  readonly forwarding: Forwarding
  readonly response: Response
  readonly timers: ManualTimers
  readonly controller: Dispatcher.DispatchController
  readonly #log: unknown[][] = []

  constructor(t: Test, request: Partial<ForwardRequest>, times: { headersMs: number; stallMs: number }) {
    const log = (...entry: unknown[]): void => void this.#log.push(entry)
    this.timers = new ManualTimers(t)
    this.response = new Response(log)
    this.controller = {
      abort: ({ message, name }: Error) => log('abort', message, ...(name === 'Error' ? [] : [name])),
      pause: () => log('pause'),
      resume: () => log('resume'),
    } as unknown as Dispatcher.DispatchController
    const whole: ForwardRequest = {
      isSafe: false,
      response: this.response,
      breakOff: () => log('break off'),
      withholds: () => false,
      onHeadersOrFailure: () => log('headers or failure'),
      ...request,
      begin: (...begun) => {
        log('begin', ...begun)
        request.begin?.(...begun)
      },
    }
    this.forwarding = new Forwarding(
      whole,
      { ...times, drainsLeft: 1, onSettled: () => log('settled') },
      {
        firstByte: { refusal: () => undefined } as never,
        span: { end: () => undefined } as never,
        isConnectionFailing: () => false,
      },
    )
  }

  /** What has happened since it was asked last. */
  readonly logged = (): unknown[][] => this.#log.splice(0)
}
