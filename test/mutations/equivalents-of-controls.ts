import { inFile, type Equivalent } from './equivalent.ts'

const TOLD =
  "if (mark?.value === RENEWED) await this.#store.replace(besideKey(key, 'renewed'), RENEWED, ACCEPTED, mark.expiresAt)"
const FIRST_REPORT = 'Nothing was reported before, so by the time alone the first report is due.'

/** The slips that change nothing in the controls of operators, in sessions and in shared responses. */
export const OF_CONTROLS: readonly Equivalent[] = [
  ...inFile('src/controls/instance-reports.ts', [
    [
      "#last = { version: -1, stored: '', at: -Infinity }",
      '{}',
      'No version is undefined, so the first report is due.',
    ],
    ["#last = { version: -1, stored: '', at: -Infinity }", '+1', FIRST_REPORT],
    [
      "#last = { version: -1, stored: '', at: -Infinity }",
      '+Infinity',
      'No version is -1, so the first report is due.',
    ],
    ["#last = { version: -1, stored: '', at: -Infinity }", '"Stryker was here!"', FIRST_REPORT],
  ]),
  ...inFile('src/controls/control-document.ts', [
    [
      'return JSON.stringify(one) < JSON.stringify(than)',
      'JSON.stringify(one) <= JSON.stringify(than)',
      'Of two equal controls either one is as good.',
    ],
    [
      '.toSorted(([a, one], [b, other]) => other.version - one.version || (a < b ? -1 : 1))',
      'a <= b',
      'No two controls have the same name.',
    ],
    [
      'return JSON.stringify([...document].toSorted(([a], [b]) => (a < b ? -1 : 1)))',
      'a <= b',
      'No two controls have the same name.',
    ],
    [
      'if (one.version !== than.version) return one.version < than.version',
      'one.version <= than.version',
      'They differ.',
    ],
    ['if (one.at !== than.at) return one.at < than.at', 'one.at <= than.at', 'They differ.'],
    ['} catch {', '{}', 'A function that returns nothing returns undefined.'],
  ]),
  ...inFile('src/proxy/shared-responses.ts', [
    [
      'return await this.#ask(requestId, { id, storeAheadMs })',
      'this.#ask(requestId, {\n  id,\n  storeAheadMs\n})',
      'Without the store it tells nobody, and throws nothing that would be caught here.',
    ],
    ['return { is, cause, responseBegan: false }', 'true', 'The problem does not tell whether a response had begun.'],
  ]),
  ...inFile('src/sessions/subjects.ts', [
    [
      'if (issuedAt !== undefined && (await this.logouts?.mayLive(issuedAt, twin, state, age)) !== true) return false',
      'this.logouts.mayLive',
      'Without logouts of the provider no session has such a time.',
    ],
  ]),
  ...inFile('src/sessions/token-renewal.ts', [
    ["if (saved !== undefined) return { is: 'good', session: saved }", 'false', 'It is read again, and is the same.'],
    [
      'const leftMs = refusals === undefined ? 0 : await this.#refusals.leftMs(refusals, user)',
      'false',
      'No record has no rest.',
    ],
  ]),
  ...inFile('src/sessions/renewed-tokens.ts', [
    [TOLD, 'true', 'The store compares as well, and nobody hears of a fault.'],
    [TOLD, 'mark.value', 'Nobody hears of a fault.'],
  ]),
  ...inFile('src/sessions/repository.ts', [
    [
      'return spare <= 0 ? endsAt : endsAt - Math.floor(spare / this.stepMs) * this.stepMs',
      'spare < 0',
      'Nothing has no steps, so both are the end.',
    ],
    ['return opened === undefined ? undefined : parseRecord(opened)', 'false', 'What is missing is no record either.'],
  ]),
  ...inFile('src/sessions/subject-index.ts', [
    [
      '.toSorted((one, other) => one.entry.addedAt - other.entry.addedAt || (one.entry.id < other.entry.id ? -1 : 1))',
      'one.entry.id <= other.entry.id',
      'No two entries have the same id.',
    ],
  ]),
  ...inFile('src/controls/shared-controls.ts', [
    [
      "return this.#reports.report(versionOf(this.document), this.#state.version ?? '', storeNow())",
      '"Stryker was here!"',
      'It was read before.',
    ],
    ['#isUntidy = false', 'true', 'It is asked for after a text was read, which sets it.'],
  ]),
  ...inFile('src/controls/stored-text.ts', [
    ["export function statedVersion(text = ''): number {", '"Stryker was here!"', 'That states no version either.'],
  ]),
  ...inFile('src/controls/controls.ts', [
    ['#forbidsClosing = false', 'true', 'It is read while a subject is paused, and is set together with that pause.'],
    [
      'if (this.#all === undefined && this.#subjects.size === 0) return undefined',
      'false',
      'Without pauses the next lines find none.',
    ],
    [
      "const own = whose === undefined || whose === 'failed' ? undefined : this.#subjects.get(whose.subject)",
      'false',
      'A failure has no subject, and no subject is no pause. That an unknown session would be asked for its subject is noticed.',
    ],
  ]),
  ...inFile('src/controls/open-controls.ts', [
    [
      'return asked === undefined && mayRepeat && !isCurrent() ? await identify(session, false) : asked',
      'identify(session, false)',
      'It never rejects.',
    ],
  ]),
]
