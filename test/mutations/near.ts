/** The claims of keys, without a server. */
const CLAIMS = [
  'proxy/idempotency-ends',
  'proxy/idempotency-records',
  'proxy/idempotency-claims',
  'proxy/idempotency-usage',
  'proxy/idempotency-leases',
]

/** The renewal of tokens. */
const RENEWALS = [
  'sessions/renewed-tokens-saved',
  'sessions/access-tokens',
  'sessions/refresh',
  'sessions/refresh-standstill',
]

/**
 * The tests below test/ that are to notice slips in a file, the quickest first, where its name and its chapter do not say which.
 * A folder counts for the files in it that have no line of their own.
 */
export const NEAR: Readonly<Record<string, readonly string[]>> = {
  'src/controls': [
    'controls/control-versions',
    'controls/instance-reports',
    'controls/one-process',
    'controls/lifted-controls',
  ],
  'src/login/browser-logins.ts': ['login/transactions-alone'],
  'src/login/login-cookies.ts': ['login/transactions-alone'],
  'src/login/login-record.ts': ['login/transactions-alone'],
  'src/login/login-transactions.ts': ['login/transactions-alone', 'login/transactions'],
  'src/login': [
    'login/session-routes',
    'login/login-start',
    'login/callback-outcomes',
    'login/own-sessions',
    'oidc/backchannel',
    'oidc/provider-logout',
  ],
  'src/proxy': [
    'proxy/refused-tokens',
    'proxy/shared-responses',
    'sessions/ended-while-waiting',
    'controls/waiting-orders',
    'upstream/uploads',
  ],
  'src/proxy/idempotency/answer-sink.ts': ['proxy/idempotency-answer'],
  'src/proxy/idempotency/claim.ts': CLAIMS,
  'src/proxy/idempotency/compact-record.ts': ['proxy/idempotency-sealed'],
  'src/proxy/idempotency/idempotency-records.ts': CLAIMS,
  'src/proxy/idempotency/key-header.ts': ['proxy/idempotency-answer'],
  'src/proxy/idempotency/key-usage.ts': CLAIMS,
  'src/proxy/idempotency/record.ts': ['proxy/idempotency-answer'],
  'src/proxy/idempotency/sealed-records.ts': ['proxy/idempotency-sealed'],
  'src/proxy/idempotency/two-claims.ts': ['proxy/idempotency-two-claims'],
  'src/proxy/idempotency': [
    'proxy/idempotency-answer',
    'proxy/idempotency',
    'proxy/idempotency-limits',
    'proxy/idempotency-outcomes',
  ],
  'src/sessions': [
    'sessions/session-replacement',
    'sessions/races',
    'sessions/touches',
    'sessions/lost-replies',
    'sessions/sessions',
  ],
  'src/sessions/access-tokens.ts': RENEWALS,
  'src/sessions/endings.ts': ['sessions/endings', 'sessions/lost-sessions'],
  'src/sessions/near-cache.ts': ['sessions/near-cache-standstill', 'sessions/near-cache'],
  'src/sessions/own-sessions.ts': ['sessions/own-sessions-limits', 'sessions/own-sessions'],
  'src/sessions/refusals.ts': ['sessions/refusals'],
  'src/sessions/renewal-pauses.ts': ['sessions/renewal-pauses'],
  'src/sessions/live-sessions.ts': ['sessions/live-sessions'],
  'src/sessions/shared-refusals.ts': ['sessions/shared-refusals-records', 'sessions/shared-refusals'],
  'src/sessions/subject-index.ts': ['sessions/own-sessions', 'sessions/subject-list'],
  'src/sessions/subjects.ts': ['sessions/own-sessions', 'sessions/subject-limit', 'sessions/subjects'],
  'src/sessions/token-renewal.ts': RENEWALS,
  'src/sessions/watcher.ts': ['sessions/watcher-checks', 'sessions/watcher-renewals', 'sessions/watcher'],
  'src/upstream/budget/alone.ts': ['upstream/budget-lease'],
  'src/upstream/budget/lease.ts': ['upstream/budget-lease'],
  'src/upstream/budget/terms.ts': ['upstream/budget-lease', 'upstream/budget-spread'],
  'src/upstream/budget/waiting-line.ts': ['upstream/budget-line'],
  'src/upstream/budget': [
    'upstream/budget-lease',
    'upstream/late-probe',
    'upstream/budget-parts',
    'upstream/suspicion',
    'upstream/budget-held-back',
    'upstream/budget-away',
  ],
}
