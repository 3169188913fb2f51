import { inFile, type Equivalent } from './equivalent.ts'

const NOTHING = 'A function that returns nothing returns undefined.'

const ONE_EACH = 'There is a reply for each write.'
const HAS_MASTER =
  "if (this.#latest === undefined || this.#connection?.isUp !== true) throw new Unsent(new Error('there is no master'))"

/** The slips that change nothing in the store. */
export const OF_STORE: readonly Equivalent[] = [
  ...inFile('src/store/command.ts', [
    [
      'Object.defineProperty(Base.prototype, name, { value, configurable: true, writable: true })',
      'false',
      'Who wants another method assigns it. That this fails is noticed.',
    ],
  ]),
  ...inFile('src/store/credentials-trial.ts', [
    [
      "if (!next.isServed) return next.silent[0] ?? next.faults[0] ?? 'no server replies'",
      '""',
      'Where no server serves, there is a fault of one.',
    ],
    ...['["Stryker was here"]', 'false'].map(
      (slip) => ['if (address === undefined) return []', slip, 'At no address does a server serve.'] as const,
    ),
  ]),
  ...inFile('src/store/links/replicas.ts', [
    [
      'if (master.running === undefined) return await this.#check(master, key)',
      'this.#check(master, key)',
      'A check never rejects.',
    ],
  ]),
  ...inFile('src/store/links/replicated-writes.ts', [
    ['batch = []', '["Stryker was here"]', 'Nothing can fail before it is another one.'],
    ["if (reply.status === 'fulfilled') batch[index]?.resolve(reply.value)", 'batch[index].resolve', ONE_EACH],
    ['else batch[index]?.reject(reply.reason)', 'batch[index].reject', ONE_EACH],
    [
      'if (!(error instanceof TooFewReplicas) && this.#connection?.isUp === true)',
      'this.#connection.isUp',
      'It was asked for before anything could fail.',
    ],
  ]),
  ...inFile('src/store/probe.ts', [
    ["return keyOf({ owns }) ?? ''", '"Stryker was here!"', 'A master that is asked owns a slot, and so has a key.'],
  ]),
  ...inFile('src/store/redis-store.ts', [
    ["if (refusal) this.#noteError(errorCode(refusal) ?? '', key)", '"Stryker was here!"', 'Neither is a code.'],
  ]),
  ...inFile('src/store/servers/server-facts.ts', [
    [
      'if (this.#query !== undefined) await within(SCRAPE_WAIT_MS, this.#query)',
      'true',
      'What is no question takes no time.',
    ],
  ]),
  ...inFile('src/store/servers/masters.ts', [
    [
      "if (NO_MASTER.has(report.refusal ?? '')) throw new Error(report.refusal)",
      '"Stryker was here!"',
      'Neither is a code.',
    ],
  ]),
  ...inFile('src/store/servers/store-clock.ts', [
    ["const how = hereAheadMs > 0 ? 'ahead of' : 'behind'", 'hereAheadMs >= 0', 'It is not nothing.'],
  ]),
  ...inFile('src/store/links/channel-subscriber.ts', [
    [
      "if (!link.masterNames().has(name)) subscription.drop('it is no master any more')",
      '""',
      'Nobody hears why a subscription has moved.',
    ],
  ]),
  ...inFile('src/store/links/cluster-commands.ts', [
    ['default:', 'default:', 'Without a case of its own nothing is returned either.'],
  ]),
  ...inFile('src/store/links/cluster-slots.ts', [
    [
      'const [, tag = key] = /^[^{]*\\{([^}]+)\\}/.exec(key) ?? []',
      '["Stryker was here"]',
      'The whole match is left out.',
    ],
    ...['{}', '"Stryker was here!"'].map(
      (slip) =>
        [
          "return isNode === '1' ? (await readSlots(connection, { host: '', port: 0 })).masters.length : 1",
          slip,
          'The masters are only counted.',
        ] as const,
    ),
  ]),
  ...inFile('src/store/links/cluster-link.ts', [
    [
      'unreached: (node, reason) => this.#events?.unreached(node.name, reason),',
      'this.#events.unreached',
      'There is no node before the link is opened.',
    ],
    [
      'const asked = this.#events?.ask(node, connection) ?? connection.ping()',
      'this.#events.ask',
      'There is no node before the link is opened.',
    ],
    [
      'this.#events?.unreached(node.name, reasonOf(error))',
      'this.#events.unreached',
      'There is no node before the link is opened.',
    ],
    [
      'this.#endReads = polls(async () => void (await this.#nodes.read()), SLOTS_INTERVAL_MS)',
      'this.#nodes.read()',
      'Who reads while the slots are read shares that.',
    ],
  ]),
  ...inFile('src/store/links/cluster-nodes.ts', [
    [
      "if (masters.length === 0) throw new Error('the node knows of no slots')",
      '""',
      'Nobody hears why a node is of no use.',
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
  ]),
  ...inFile('src/store/links/confirming-server.ts', [
    ["#latestKey = ''", '"Stryker was here!"', 'A write has named a key before the first probe.'],
    ["this.#events.failed(this.failure ?? '')", '"Stryker was here!"', 'There is a failure, which was just noted.'],
  ]),
  ...inFile('src/store/links/link-to.ts', [
    ...['false', '""'].map(
      (slip) =>
        [
          "if (server === undefined) throw new Error('the Sentinel names no master')",
          slip,
          'It fails all the same, and nobody hears why.',
        ] as const,
    ),
    [
      "if (masters.length === 0) throw new Error('the node knows of no slots')",
      '""',
      'Nobody hears why a node is of no use.',
    ],
  ]),
  ...inFile('src/store/links/master-link.ts', [
    [HAS_MASTER, 'false', 'A connection that is up has a server.'],
    [HAS_MASTER, 'this.#connection.isUp', 'Before there is a connection there is no server.'],
    ['if (this.#connection?.isUp !== true) return', 'this.#connection.isUp', 'The checks begin with the connection.'],
    [
      'if (current !== undefined && current.name !== known?.name && this.#latest === known)',
      'known.name',
      'A connection that is up has a server.',
    ],
    ['clusterSize(connection).catch(() => 1),', '() => undefined', 'Nothing is not more than one either.'],
    ['() => false,', '() => undefined', 'Nothing counts as no.'],
    ['return isRefused.catch(() => false)', '() => undefined', 'Nothing counts as no.'],
  ]),
  ...inFile('src/store/links/live-credentials.ts', [
    ["this.#next.set(server, 'new')", '""', 'Only whether they are the former ones is read.'],
  ]),
  ...inFile('src/store/index-commands.ts', [
    ["const [id = '', text = ''] = fields.slice(at, at + 2)", '"Stryker was here!"', 'Fields come in pairs.'],
    ['for (let at = 0; at < fields.length; at += 2) {', 'at <= fields.length', 'What is none has no value.'],
    [
      'if (value !== undefined && Number(expiresAt) > now) {',
      'true',
      'Where there is no value there is no time either.',
    ],
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
