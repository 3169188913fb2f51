import type { Group } from './audience.ts'
import type { Member } from './member.ts'
import type { Stream } from './stream.ts'

/** Called when a subscription has its first answer, or an error. */
type OnAnswer = (isServed: boolean) => void

/** How long `forget_all` waits for symbols of an array that have had no message yet. */
const COMPLETE_MS = 1000

/** What one browser has asked of one stream. */
export class Subscription {
  readonly member: Member
  readonly stream: Stream
  /** Those who get the same messages. Owned by the audience. */
  group: Group | undefined
  /** Ids of a symbol array that the browser has forgotten one by one. */
  forgotten: ReadonlySet<string> | undefined
  /** False once it has ended, in whatever way. */
  isAttached = true
  #isServed = false
  #onAnswer: OnAnswer[] | undefined
  #onComplete: (() => void) | undefined

  constructor(member: Member, stream: Stream) {
    this.member = member
    this.stream = stream
    for (const claim of stream.claims) member.subscriptions.set(claim, this)
  }

  get isServed(): boolean {
    return this.#isServed
  }

  /** The subscription ids that the browser knows. */
  get ids(): string[] {
    return [...this.stream.ids].filter((id) => this.forgotten?.has(id) !== true)
  }

  /**
   * Calls back once it has its first answer or an error, at once if it has been answered. A subscription that was lost before
   * gets no answer: its browser is about to be closed.
   */
  afterAnswer(onAnswer: OnAnswer): void {
    if (this.#isServed) onAnswer(true)
    else (this.#onAnswer ??= []).push(onAnswer)
  }

  /** Calls back once every symbol of an array has had its first message, or after a second: some are silent for days. */
  whenComplete(onComplete: () => void): void {
    if (this.stream.isComplete) return onComplete()
    this.#onComplete = onComplete
    setTimeout(() => this.completed(), COMPLETE_MS).unref()
  }

  /** Notes that every symbol has had its first message. */
  completed(): void {
    const onComplete = this.#onComplete
    this.#onComplete = undefined
    onComplete?.()
  }

  /** Notes that the first answer has been sent. */
  served(): void {
    this.#isServed = true
    this.#settle(true)
  }

  /** Ends it. The error has been sent. */
  failed(): void {
    this.isAttached = false
    this.releaseClaims()
    // Whoever asks again must find the stream as it is once everybody has been told.
    queueMicrotask(() => this.#settle(false))
  }

  /** Ends it. */
  leave(): void {
    this.releaseClaims()
    this.stream.leave(this)
  }

  /** Lets the browser subscribe to the same again. */
  releaseClaims(claims = this.stream.claims): void {
    const { subscriptions } = this.member
    for (const claim of claims) if (subscriptions.get(claim) === this) subscriptions.delete(claim)
  }

  #settle(isServed: boolean): void {
    const callbacks = this.#onAnswer ?? []
    this.#onAnswer = undefined
    for (const onAnswer of callbacks) onAnswer(isServed)
  }
}
