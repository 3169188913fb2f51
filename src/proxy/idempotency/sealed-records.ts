import type { Envelope } from '../../sessions/index.ts'
import { KINDS, pack, unpack } from './compact-record.ts'
import type { CallRecord } from './record.ts'

const KNOWN: ReadonlySet<unknown> = new Set(KINDS)

/** The owner and the place of a record. */
export interface RecordPlace {
  readonly recordKey: string
  /** The session's id, without which the record cannot be opened. */
  readonly sessionId: string
}

/** Seals records, and opens them in either form: as JSON, which version 0.3 understands, and compact, in half of the memory. */
export class SealedRecords {
  readonly #envelope: Envelope
  readonly #isCompact: boolean

  /** @param isCompact the form of the records that are sealed here */
  constructor(envelope: Envelope, isCompact: boolean) {
    this.#envelope = envelope
    this.#isCompact = isCompact
  }

  /** Each result is unique, even for equal records, so it identifies its writer. */
  seal({ recordKey, sessionId }: RecordPlace, record: CallRecord): string {
    if (this.#isCompact) return this.#envelope.sealBytes(recordKey, sessionId, pack(record))
    const json = record.is === 'answered' ? { ...record, body: record.body.toString('base64') } : record
    return this.#envelope.seal(recordKey, sessionId, JSON.stringify(json))
  }

  /** Undefined if this instance cannot read the record, though another one may be able to. */
  open({ recordKey, sessionId }: RecordPlace, text: string): CallRecord | undefined {
    const bytes = this.#envelope.openBytes(recordKey, sessionId, text)
    if (bytes !== undefined) return unpack(bytes)
    const opened = this.#envelope.open(recordKey, sessionId, text)
    // Only a server with the secrets can have written it. It may be of another version.
    const record = opened === undefined ? undefined : (JSON.parse(opened) as CallRecord)
    if (!KNOWN.has(record?.is)) return undefined
    return record?.is === 'answered' ? { ...record, body: Buffer.from(String(record.body), 'base64') } : record
  }
}
