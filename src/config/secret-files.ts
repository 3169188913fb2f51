import { readFile } from 'node:fs/promises'
import { polls } from '../time/polls.ts'
import { within } from '../time/within.ts'
import { problemsOf, type Config } from './config.ts'
import { withoutCredentials } from './redis-address.ts'
import { secretSettings, secretTexts, type SecretSetting } from './secrets.ts'
import { textOfFile } from './setting-formats.ts'
import type { Environment } from './setting-rule.ts'

/** How often the files are read. A text counts once it was read twice alike, so that a file that is being written does not. */
const READ_INTERVAL_MS = 1000
/** A read that has not ended after this time has failed for now. */
const READ_TIMEOUT_MS = 5000
/** At every so many looks, credentials that Redis refuses are tried again: it may learn of them after the file. */
const LOOKS_PER_TRY = 5

interface SecretFilesDependencies {
  readonly log: { info(details: object, message: string): void; warn(details: object, message: string): void }
  /** Tries an address of Redis whose credentials are new. @returns why they cannot be used; undefined if they can */
  readonly tryRedis: (url: string, present: string) => Promise<string | undefined>
  readonly readMs?: number
  readonly timeoutMs?: number
}

/**
 * Takes secrets from their files when these change, and keeps the present one while a file has none that can be used. Each
 * secret is taken by itself. A Kubernetes volume is replaced as a whole, so a path may lead to another file at each look.
 */
export class SecretFiles {
  readonly #files: ReadonlyMap<SecretSetting, string>
  readonly #environment: Environment
  readonly #config: Config
  readonly #deps: SecretFilesDependencies
  readonly #readMs: number
  /** The text of each file at the last look; undefined while it could not be read. */
  readonly #seen = new Map<SecretSetting, string | undefined>()
  /** The files whose read has not ended. It takes a thread, which nothing can end, so no file is read twice at once. */
  readonly #reading = new Set<string>()
  /** The texts that need no second thought. */
  readonly #settled = new Map<SecretSetting, string | undefined>()
  /** Why the present value stays, for the settings whose files have another one. */
  readonly #refusals = new Map<SecretSetting, string>()
  #onTaken: () => void = () => undefined
  #latestTry: { readonly text: string; readonly at: number } | undefined
  readonly #endReads: () => void
  #isClosed = false

  constructor(
    files: ReadonlyMap<SecretSetting, string>,
    environment: Environment,
    config: Config,
    deps: SecretFilesDependencies,
  ) {
    this.#files = files
    this.#environment = environment
    this.#config = config
    this.#deps = deps
    this.#readMs = deps.readMs ?? READ_INTERVAL_MS
    this.#endReads = polls(() => this.#look(), this.#readMs)
  }

  /** For operators: the settings that keep their value although their files have another one, and why. Contains no value. */
  get warnings(): string[] {
    return [...this.#refusals].map(([name, reason]) => `${name} has not changed with its file: ${reason}`)
  }

  /** The settings that are read from files, and whether the value of the file is refused. */
  get states(): (readonly [name: SecretSetting, isRefused: boolean])[] {
    return [...this.#files.keys()].map((name) => [name, this.#refusals.has(name)])
  }

  /** Calls the listener, only the latest, after each secret that was taken. */
  onTaken(listener: () => void): void {
    this.#onTaken = listener
  }

  close(): void {
    this.#isClosed = true
    this.#endReads()
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    for (const [name, path] of this.#files) {
      const text = await this.#read(path)
      const isAlike = this.#seen.has(name) && this.#seen.get(name) === text
      this.#seen.set(name, text)
      const isSettled = this.#settled.has(name) && this.#settled.get(name) === text
      if (isAlike && !isSettled && !this.#isClosed) await this.#consider(name, text)
    }
  }

  async #consider(name: SecretSetting, text: string | undefined): Promise<void> {
    const reason = text === undefined ? 'the file cannot be read as text' : this.#problemOf(name, text)
    if (reason !== undefined || text === undefined) {
      this.#settled.set(name, text)
      return this.#refuse(name, reason ?? '')
    }
    // Nothing is settled while Redis refuses the text: the next one may be that of the value in use, which ends the refusal.
    this.#settled.delete(name)
    const { textOf, normalized, take } = secretSettings[name]
    const present = textOf(this.#config)
    if (normalized(text) !== present) {
      if (name === 'REDIS_URL' && !(await this.#isUsable(text, present))) return
      take(this.#config, text)
      this.#onTaken()
      this.#deps.log.info({ setting: name }, 'a secret has changed: the new value of its file is in use')
    } else if (this.#refusals.has(name)) {
      this.#deps.log.info({ setting: name }, 'the file of a secret has the value that is in use again')
    }
    this.#settled.set(name, text)
    this.#refusals.delete(name)
  }

  /** Whether Redis takes the credentials of an address. False without a try if it has just refused them, and after the close. */
  async #isUsable(url: string, present: string): Promise<boolean> {
    const now = performance.now()
    if (this.#latestTry?.text === url && now - this.#latestTry.at < LOOKS_PER_TRY * this.#readMs) return false
    this.#latestTry = { text: url, at: now }
    const refusal = await this.#deps.tryRedis(url, present)
    if (refusal !== undefined) this.#refuse('REDIS_URL', refusal)
    return refusal === undefined && !this.#isClosed
  }

  #refuse(name: SecretSetting, reason: string): void {
    if (this.#refusals.get(name) === reason) return
    this.#refusals.set(name, reason)
    this.#deps.log.warn({ setting: name, reason }, 'a secret has not changed with its file')
  }

  /** Undefined if the text can take the place of the present value. */
  #problemOf(name: SecretSetting, text: string): string | undefined {
    const [problem] = problemsOf(name, text, { ...this.#environment, ...secretTexts(this.#config) })
    if (problem !== undefined) return `it ${problem}`
    const [signing = ''] = this.#config.secrets.current
    if (name === 'SESSION_SECRETS' && !secretSettings[name].normalized(text).split(',').includes(signing)) {
      return 'it must keep the secret that signs at present: append the new one, and put it first once all processes have it'
    }
    if (name === 'REDIS_URL' && withoutCredentials(text) !== withoutCredentials(this.#config.redisUrl?.current ?? '')) {
      return 'it must differ in its user and password only: anything else needs a restart'
    }
    return undefined
  }

  /** Undefined if the file cannot be read as text. */
  async #read(path: string): Promise<string | undefined> {
    if (this.#reading.has(path)) return undefined
    this.#reading.add(path)
    const read = readFile(path).finally(() => this.#reading.delete(path))
    try {
      // A file system that hangs must not end the looks at the other files.
      const bytes = await within(this.#deps.timeoutMs ?? READ_TIMEOUT_MS, read)
      return bytes && textOfFile(bytes)
    } catch {
      return undefined
    }
  }
}
