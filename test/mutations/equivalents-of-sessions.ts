import { inFile, type Equivalent } from './equivalent.ts'

const MOMENT = 'A clock of fractions of a millisecond never shows this very moment.'
const NO_COOKIE = 'The plugin sees no cookie of a session.'
const NEED = 'Only the other two needs are asked for by their names.'
const NO_MARK = 'No value has this mark, so that it is read all the same.'
const NO_SUCH_GRANT = "Where none is too many, the name that is removed is nobody's."
const NO_CASE = 'Without a case of its own nothing is returned, which counts as no.'

/** The slips that change nothing in sessions and limits. */
export const OF_SESSIONS: readonly Equivalent[] = [
  ...inFile('src/sessions/near-cache.ts', [
    ['this.#isHeard()', ';', 'The next look at the cache notices the same standstill, and forgets as much.'],
    [
      'if (expiryOf(session) !== undefined) void this.#sessions.endings.recordExpiry(session)',
      'true',
      'Endings.recordExpiry does nothing for a session within its limits.',
    ],
    ['for (let leftMs = MAX_DEAF_MS; leftMs > 0; leftMs = giveUpAt - standstill.now()) {', 'leftMs >= 0', MOMENT],
  ]),
  ...inFile('src/sessions/own-sessions.ts', [
    [
      "const [index = ''] = this.#index.keysOf(subject)",
      '"Stryker was here!"',
      'A subject always has the key of an index.',
    ],
    [
      "const [own = ''] = this.#index.keysOf(subject)",
      '"Stryker was here!"',
      'A subject always has the key of an index.',
    ],
    [
      "const { value = '', expiresAt = 0 } = (await this.#store.readUntracked(partKey(index, 'ended'))) ?? {}",
      '"Stryker was here!"',
      'Any text stands for no mark, as long as it is always the same.',
    ],
  ]),
  ...inFile('src/sessions/refusals.ts', [
    ["['invalid_request', 'never'],", '""', NO_CASE],
    ["['invalid_scope', 'never'],", '""', NO_CASE],
    ["['unsupported_grant_type', 'never'],", '""', NO_CASE],
    ["['invalid_target', 'never'],", '""', NO_CASE],
    ["['use_dpop_nonce', 'never'],", '""', NO_CASE],
    ["case 'never':", '""', NO_CASE],
  ]),
  ...inFile('src/sessions/shared-refusals.ts', [
    ['const [oldest] = this.#grants.size > 2 ? this.#grants.keys() : []', '["Stryker was here"]', NO_SUCH_GRANT],
    ['if (oldest !== undefined) this.#grants.delete(oldest)', 'true', NO_SUCH_GRANT],
    ["const { value = '', now } = await store.readMarked(REFRESHES_KEY, '')", '"Stryker was here!"', NO_MARK],
    ["const { now } = await this.#store.readMarked(REFRESHES_KEY, '')", '"Stryker was here!"', NO_MARK],
    [
      'if (expiredAt <= now && last < expiredAt && next === last + RETRY_REFUSED_MS) return 0',
      'expiredAt < now',
      MOMENT,
    ],
    [
      'if (expiredAt <= now && last < expiredAt && next === last + RETRY_REFUSED_MS) return 0',
      'last <= expiredAt',
      MOMENT,
    ],
    ['return next > now ? Math.min(next - now, MAX_PAUSE_MS) : 0', 'next >= now', 'No time is left in either case.'],
    [
      'await this.#news.change((news, now) => noteGrants(news, grants, now))',
      'this.#news.change((news, now) => noteGrants(news, grants, now))',
      'It is done in the background: nobody waits for it, and it never rejects.',
    ],
  ]),
  ...inFile('src/sessions/index.ts', [
    ["need: TokenNeed = 'valid',", '""', NEED],
    [
      "#authorize(found: SessionLookup, need: TokenNeed = 'valid', client?: Client): Authorization | Promise<Authorization> {",
      '""',
      NEED,
    ],
  ]),
  ...inFile('src/sessions/session-writer.ts', [
    ['cookie: { secure: true },', 'false', 'The plugin never comes to set a cookie.'],
    ['cookie: { secure: true },', '{}', 'The plugin never comes to set a cookie.'],
    ['rolling: false,', 'true', NO_COOKIE],
    ['get: (_id, done) => done(null, null),', '() => undefined', NO_COOKIE],
    [
      'await fastify.register(fastifySession, {',
      "fastify.register(fastifySession, {\n  secret: cookie.signer,\n  cookieName: cookie.name,\n  cookie: {\n    secure: true\n  },\n  saveUninitialized: false,\n  rolling: false,\n  idGenerator: () => randomBytes(32).toString('base64url'),\n  store: creatingStore(sessions)\n})",
      'A server is not ready before all of its plugins are.',
    ],
  ]),
  ...inFile('src/limits/session-permits.ts', [
    ['if (held === undefined) continue', 'false', 'A session is known as long as it has a permit or claims one.'],
  ]),
  ...inFile('src/limits/call-limit.ts', [
    ['if (quota === undefined || leftMs <= 0) return undefined', 'false', 'Without a quota no time is left.'],
    ['} catch {', '{}', 'Without a value it returns none, which counts as no.'],
    [
      'for (const [key, { endsAt }] of this.#quotas) if (endsAt <= now) this.#quotas.delete(key)',
      'endsAt < now',
      MOMENT,
    ],
  ]),
  ...inFile('src/sessions/device.ts', [
    ["const read = userAgent?.slice(0, MAX_READ) ?? ''", '"Stryker was here!"', 'That names no device either.'],
    [
      'const known = [browser.name, os.name].filter((name) => name !== undefined && NAMES.has(name))',
      'true',
      'What has no name has none of these.',
    ],
  ]),
  ...inFile('src/sessions/endings.ts', [
    [
      "const [name = '', stage, word = '', record] = text.split(',')",
      '"Stryker was here!"',
      'A text has a first part, and with a record it has a third.',
    ],
  ]),
  ...inFile('src/sessions/token-renewal.ts', [
    [
      'for (let tries = 0; !this.isEnding && performance.now() < giveUpAt; tries++) {',
      'performance.now() <= giveUpAt',
      MOMENT,
    ],
    [
      "if (outcome.is === 'unavailable' && outcome.busyForMs !== undefined) {",
      'true',
      'Only a provider that cannot answer now is busy for a time.',
    ],
  ]),
]
