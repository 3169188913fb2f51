import { inFile, type Equivalent } from './equivalent.ts'

const NOTHING = 'A function that returns nothing returns undefined.'

/** The slips that change nothing in the store. */
export const OF_STORE: readonly Equivalent[] = [
  ...inFile('src/store/command.ts', [
    [
      'Object.defineProperty(Base.prototype, name, { value, configurable: true, writable: true })',
      'false',
      'Who wants another method assigns it. That this fails is noticed.',
    ],
  ]),
  ...inFile('src/store/fingerprint-key.ts', [
    [
      'return (await this.#store.readUntracked(FINGERPRINT_KEY))?.value',
      '(await this.#store.readUntracked(FINGERPRINT_KEY)).value',
      'Where it fails there is no value either.',
    ],
  ]),
  ...inFile('src/store/ledger/ledger-commands.ts', [
    [
      "export const SETTLE = readFileSync(new URL('settle.lua', import.meta.url), 'utf8')",
      '""',
      'Redis gets the same bytes.',
    ],
    [
      "ledger.settle(terms, report, { timeOfDay: performance.now(), run: '', quietMs: 0, isHolder: true }),",
      '"Stryker was here!"',
      'A process alone has one run.',
    ],
  ]),
  ...inFile('src/store/links/confirming-server.ts', [
    ["#latestKey = ''", '"Stryker was here!"', 'A write has named a key before the first probe.'],
    ["this.#events.failed(this.failure ?? '')", '"Stryker was here!"', 'There is a failure, which was just noted.'],
  ]),
  ...inFile('src/store/links/live-credentials.ts', [
    ["this.#next.set(server, 'new')", '""', 'Only whether they are the former ones is read.'],
  ]),
  ...inFile('src/store/limit-commands.ts', [
    [
      "const isFirst = values.get(key) === undefined && values.write(key, '', Date.now() + endsInMs)",
      '"Stryker was here!"',
      'Only whether there is a value is read.',
    ],
  ]),
  ...inFile('src/store/marked-reading.ts', [
    ["return text.split(' ', 1)[0] ?? ''", '"Stryker was here!"', 'A text has a first part.'],
  ]),
  ...inFile('src/store/memory-store.ts', [
    ['async isReplicated(): Promise<undefined> {', '{}', NOTHING],
    ['async openRefusals(): Promise<undefined> {', '{}', NOTHING],
    ['unavailableSince(): undefined {', '{}', NOTHING],
  ]),
  ...inFile('src/store/shared-document.ts', [
    ["let written = ''", '"Stryker was here!"', 'Neither is the version of a document.'],
  ]),
]
