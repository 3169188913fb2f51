import { inFile, type Equivalent } from './equivalent.ts'

const MOMENT = 'A clock of fractions of a millisecond never shows this very moment.'
const COUNTED = 'The commands of a connection are carried out in order, so whoever counts next counts this, too.'
const NODE_HEADERS = 'Node has this header of a request as one text, and beside it all of its values.'
const NO_MARK = 'No value has this mark, so that it is read all the same.'
const NO_SUCH_GRANT = "Where none is too many, the name that is removed is nobody's."
const NO_CASE = 'Without a case of its own nothing is returned, which counts as no.'

const HURRY = "if (stock.spare < 1 || (this.#calls.get(subject) ?? 0) >= stock.greedy) return 'none'"
const NONE_LEFT = 'Nothing is left then either, which takes longer to find out.'
const NO_MAC = 'Only this server has made a MAC, and for no other text.'

const NAMES =
  "const NAMES_NOTHING: ReadonlySet<string> = new Set(['keep-alive', 'Keep-Alive', 'close', 'upgrade', 'Upgrade'])"
const NAMED = 'if (connection === undefined || NAMES_NOTHING.has(String(connection))) return undefined'
const SHORTCUT = 'A shortcut: none of these is the name of a header that goes on.'

/** The slips that change nothing in logins, sessions, calls and their budget. */
export const OF_CALLS: readonly Equivalent[] = [
  ...inFile('src/proxy/idempotency/claim.ts', [
    [
      'const isLeased = standstill.now() < this.#leasedAt + this.#deps.leaseMs',
      'standstill.now() <= this.#leasedAt + this.#deps.leaseMs',
      MOMENT,
    ],
    [
      'return !this.#isLost && isLeased && storeNow() < Math.min(this.#leaseUntil, this.own.expiresAt)',
      'storeNow() <= Math.min(this.#leaseUntil, this.own.expiresAt)',
      MOMENT,
    ],
    [
      'if (texts.length > 0 && expiresAt > storeNow() && (await store.create(recordKey, next, expiresAt))) {',
      'expiresAt >= storeNow()',
      MOMENT,
    ],
    [
      'this.#texts = [next, ...texts.filter((text) => text !== next)]',
      'texts',
      'A text that is there twice is only tried twice.',
    ],
    [
      'this.#texts = [next, ...texts.filter((text) => text !== next)]',
      'true',
      'A text that is there twice is only tried twice.',
    ],
    [
      'await this.#deps.usage.removeRecord(this.own.session).catch(() => undefined)',
      'this.#deps.usage.removeRecord(this.own.session).catch(() => undefined)',
      COUNTED,
    ],
    [
      'await usage.addBytes(this.own.session, -more).catch(() => undefined)',
      'usage.addBytes(this.own.session, -more).catch(() => undefined)',
      COUNTED,
    ],
  ]),
  ...inFile('src/proxy/idempotency/compact-record.ts', [
    [
      "const place = isCommon && typeof type === 'string' ? TYPES.indexOf(type) : -1",
      'true',
      'A type that is missing has no place among them either.',
    ],
    ['case undefined:', 'case undefined:', 'Without a case of its own nothing is returned either.'],
  ]),
  ...inFile('src/proxy/idempotency/idempotency-records.ts', [
    [
      'if (error instanceof StoreUnavailable) {',
      'true',
      'After a fault of this program it does not matter whether a record that may exist is removed.',
    ],
    ['if (isCreated) await store.removeIf(recordKey, text)', 'true', 'Nobody else can have written this very text.'],
    [
      'return storeNow() > leaseUntil + clockSkewMs && this.#deps.store.availableForMs() >= settleMs',
      'storeNow() >= leaseUntil + clockSkewMs',
      MOMENT,
    ],
    [
      'return storeNow() > leaseUntil + clockSkewMs && this.#deps.store.availableForMs() >= settleMs',
      'this.#deps.store.availableForMs() > settleMs',
      MOMENT,
    ],
  ]),
  ...inFile('src/proxy/idempotency/key-header.ts', [
    [
      "const key = typeof header === 'string' && !isRepeated(raw.rawHeaders, NAME) ? unquoted(header) : undefined",
      'true',
      NODE_HEADERS,
    ],
  ]),
  ...inFile('src/proxy/idempotency/key-usage.ts', [
    [
      'if (total <= 0) return { records: 0, bytes: 0 }',
      'total < 0',
      'A total of 0 is no records and no bytes in any case.',
    ],
  ]),
  ...inFile('src/proxy/idempotency/sealed-records.ts', [
    [
      "return record?.is === 'answered' ? { ...record, body: Buffer.from(String(record.body), 'base64') } : record",
      'record.is',
      'A record that cannot be opened is of no known kind, and was returned before.',
    ],
  ]),
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
  ...inFile('src/proxy/proxy.ts', [
    ["if (outcome.is === 'answered') return", 'false', 'There is nothing to conclude then.'],
    ["if (outcome.is === 'answered') return", '""', 'There is nothing to conclude then.'],
    [
      "if (body.is === 'whole') return await sendReceived(deps, { ...call, session }, body)",
      'sendReceived(deps, {\n  ...call,\n  session\n}, body)',
      'The caller awaits it, and a whole body has nothing to discard.',
    ],
  ]),
  ...inFile('src/upstream/headers.ts', [
    [NAMES, '""', SHORTCUT],
    [NAMES, '[]', SHORTCUT],
    [NAMED, 'false', SHORTCUT],
    [NAMED, 'connection === undefined && NAMES_NOTHING.has(String(connection))', SHORTCUT],
  ]),
  ...inFile('src/upstream/request-body.ts', [
    [
      'if (this.#windowBytes !== undefined) this.#windowBytes += chunk.length',
      'true',
      'What is no number is no small one, so the window does not count either.',
    ],
    [
      'if (bytes !== undefined && bytes < MIN_BYTES_PER_WINDOW) return void this.destroy(new BodyRefused(tooSlow()))',
      'true',
      'What is undefined is no smaller than any number.',
    ],
    [
      'this.#endWait?.()',
      'this.#endWait()',
      'A source that ends was read, which begins a window. That a stream may be given up before that is noticed.',
    ],
    ['if (length > this.#buffer.length) this.#grow(length)', 'true', 'It only takes longer.'],
    ['if (length > this.#buffer.length) this.#grow(length)', 'length >= this.#buffer.length', 'It only takes longer.'],
  ]),
  ...inFile('src/proxy/upstream-problem.ts', [
    [
      "if (!reply.sent) throw upstreamProblem({ is: 'lost', cause: outcome.cause, responseBegan: true }, isSafe)",
      'false',
      'Only whoever may repeat a call reads it, and this one is over.',
    ],
  ]),
  ...inFile('src/store/servers/rights.ts', [
    [
      "function nameOf([name = '', subcommand = '']: readonly string[]): string {",
      '"Stryker was here!"',
      'A command has a name.',
    ],
    ['...(uses.tracks ? [TRACKING] : []),', '["Stryker was here"]', 'No right has this name.'],
    ['...(uses.hasSubjects ? NEEDS.subjects : []),', '["Stryker was here"]', 'No right has this name.'],
  ]),
  ...inFile('src/store/links/lasting-connection.ts', [
    ["this.#end('closed')", '""', 'A connection that is closed tells no reason.'],
    ['if (!this.#isClosed) await delay(reconnectMs(tries))', 'true', 'It only takes longer.'],
  ]),
  ...inFile('src/store/links/replicas.ts', [
    ['} catch {', '{}', 'Nothing counts as no. That have() says so is noticed.'],
  ]),
  ...inFile('src/upstream/forwarding.ts', [
    ['this.controller?.resume()', 'this.controller.resume', 'A request that is sent, or answered, has begun.'],
  ]),
  ...inFile('src/upstream/budget/upstream-refusals.ts', [
    [
      'const [oldest] = this.#until.size < MAX_USERS ? [] : this.#until.keys()',
      '["Stryker was here"]',
      'No user has this name.',
    ],
    ['if (oldest !== undefined) this.#until.delete(oldest)', 'true', 'No user is without a name.'],
  ]),
  ...inFile('src/upstream/budget/leaseholder.ts', [['} catch {', '{}', 'Nothing is returned in either case.']]),
  ...inFile('src/upstream/budget/subject-calls.ts', [
    [HURRY, 'false', NONE_LEFT],
    [HURRY, '(this.#calls.get(subject) ?? 0) > stock.greedy', NONE_LEFT],
    [HURRY, 'this.#calls.get(subject) && 0', NONE_LEFT],
  ]),
  ...inFile('src/login/login-cookies.ts', [
    ["const [secret = '', start = '', mac = ''] = value.split('.')", '"Stryker was here!"', NO_MAC],
    ['const SECRET = /^[\\w-]{32}$/', '/^[\\w-]{32}/', NO_MAC],
    ['const SECRET = /^[\\w-]{32}$/', '/[\\w-]{32}$/', NO_MAC],
    ["read(header = ''): LoginCookie[] {", '"Stryker was here!"', 'It has no cookie.'],
    [
      'return mac.length === MAC_LENGTH && this.#macKeys().some((key) => isSame(mac, macOf(signed, key)))',
      'true',
      'Texts that differ in length are not the same.',
    ],
  ]),
]
