/** The values that a field may have, as a fragment of JSON Schema. `description` is for readers of the log. */
export type FieldSchema =
  | { readonly description: string; readonly enum: readonly string[] }
  | { readonly description: string; readonly type: 'string'; readonly pattern?: string; readonly maxLength?: number }
  | { readonly description: string; readonly type: 'integer'; readonly minimum: number; readonly maximum?: number }
  | { readonly description: string; readonly type: 'number'; readonly minimum: number }
  /** An error as the log shows it. The caller passes the error itself. */
  | { readonly description: string; readonly $ref: '#/$defs/error' }

/** One kind of audit line (docs/audit.md). */
export interface AuditRule {
  /** Unless a line is more serious than usual. */
  readonly level: 'info' | 'warn'
  /** The usual `msg`. */
  readonly message: string
  /** A sentence for docs/audit.md that says what has happened. */
  readonly description: string
  /** True if the line is written with the logger of a request, which adds `reqId`. */
  readonly inRequest: boolean
  readonly required: Readonly<Record<string, FieldSchema>>
  readonly optional: Readonly<Record<string, FieldSchema>>
}

/** The type of a value that fits a schema. */
export type FieldValue<Schema extends FieldSchema> = Schema extends { enum: readonly (infer Value)[] }
  ? Value
  : Schema extends { type: 'string' }
    ? string
    : Schema extends { $ref: string }
      ? unknown
      : number

/** One of these words. */
export const oneOf = <const Words extends readonly string[]>(description: string, ...words: Words) =>
  ({ description, enum: words }) as const

/** A whole number, 0 or more. */
export const count = (description: string, maximum?: number) =>
  ({ description, type: 'integer', minimum: 0, ...(maximum !== undefined && { maximum }) }) as const

/** Text that fits the pattern of a regular expression. */
export const text = (description: string, pattern: string) => ({ description, type: 'string', pattern }) as const

const TAG = '[\\w-]{10}'

/** The keyed hash of something that the log does not name. */
export const tagOf = (description: string) => text(description, `^${TAG}$`)

/** Who caused an event: the session of a browser and its user. */
export const SESSION = tagOf('A short keyed hash of the session, the same in all of its lines')
/** The same, where there may be no session. */
export const SESSION_IF_ANY = text(`${SESSION.description}; empty without one`, `^(${TAG})?$`)
export const SUBJECT = {
  description:
    'The user: a keyed hash, or the plain subject with LOG_SUBJECT=plain. Absent if the server does not know it',
  type: 'string',
  maxLength: 256,
} as const
export const CLIENT = {
  description: 'The address of the client; empty if it left at once',
  type: 'string',
  maxLength: 64,
} as const
export const REQUEST = text(
  'The request that caused the event: X-Request-Id of its response',
  '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
)
/** For a kind of line that stands for several events when they come too fast. */
export const BOUNDED = { count: count('How many events the line stands for, if more than one') } as const
export const CAUSE = { description: 'The failure behind it, without its stack', $ref: '#/$defs/error' } as const
