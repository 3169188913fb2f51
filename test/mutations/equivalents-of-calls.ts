import { inFile, type Equivalent } from './equivalent.ts'

const MOMENT = 'A clock of fractions of a millisecond never shows this very moment.'
const COUNTED = 'The commands of a connection are carried out in order, so whoever counts next counts this, too.'
const NODE_HEADERS = 'Node has this header of a request as one text, and beside it all of its values.'

const HURRY = "if (stock.spare < 1 || (this.#calls.get(subject) ?? 0) >= stock.greedy) return 'none'"
const NONE_LEFT = 'Nothing is left then either, which takes longer to find out.'
const PLAIN = 'if (segments.every((segment) => segment.literal !== undefined)) return () => endpoint.path'
const SAME_PATH = 'A shortcut: without parameters, the parts of the path are the path.'
const HELD = 'const pushHeld = (): unknown => held.length > 0 && push(Buffer.concat(held.splice(0)))'
const NO_PIECE = 'A stream passes an empty piece on to nobody.'
const NO_MAC = 'Only this server has made a MAC, and for no other text.'

const NAMES =
  "const NAMES_NOTHING: ReadonlySet<string> = new Set(['keep-alive', 'Keep-Alive', 'close', 'upgrade', 'Upgrade'])"
const NAMED = 'if (connection === undefined || NAMES_NOTHING.has(String(connection))) return undefined'
const SHORTCUT = 'A shortcut: none of these is the name of a header that goes on.'

/** The slips that change nothing in calls and their budget. */
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
      'if (texts.length > 0 && expiresAt > storeNow() && (await store.create(recordKey, next, expiresAt))) return true',
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
      'return storeNow() > leaseUntil + clockSkewMs && this.#deps.store.availableForMs(recordKey) >= settleMs',
      'storeNow() >= leaseUntil + clockSkewMs',
      MOMENT,
    ],
    [
      'return storeNow() > leaseUntil + clockSkewMs && this.#deps.store.availableForMs(recordKey) >= settleMs',
      'this.#deps.store.availableForMs(recordKey) > settleMs',
      MOMENT,
    ],
    [
      "return { is: isOver && this.#deps.store.availableForMs(recordKey) >= settleMs ? 'unknown' : 'running' }",
      'this.#deps.store.availableForMs(recordKey) > settleMs',
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
  ...inFile('src/http/http-socket.ts', [
    [HELD, 'held.length >= 0', NO_PIECE],
    [HELD, 'true', NO_PIECE],
    ['return true', 'false', 'Node would stop to read the connection, which is paused already.'],
  ]),
  ...inFile('src/upstream/open-budget.ts', [
    [
      "const budget = await UpstreamBudget.open(config, store, (user) => refusedName(user, secrets.current[0] ?? ''))",
      '"Stryker was here!"',
      'There always is a secret.',
    ],
  ]),
  ...inFile(
    'src/proxy/endpoint.ts',
    ['false', 'segment.literal === undefined', '() => undefined'].map((slip) => [PLAIN, slip, SAME_PATH] as const),
  ),
]
