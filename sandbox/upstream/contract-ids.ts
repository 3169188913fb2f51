/** The first id of a contract, as the sandbox counts. */
export const FIRST_ID = 123_456_789
/** Added to ids, so that the first one is the least integer that a number of JavaScript takes for its neighbour. */
const BEYOND = 2n ** 53n + 1n - BigInt(FIRST_ID)
/** Ids in the text of a response. */
const NAMED = /("contract_id":)(\d+)/g
/** Ids in the text of a request. */
const ASKED = /("(?:contract_id|sell)":)(\d+)/g

/** How the ids of contracts are written in messages. */
export interface ContractIds {
  /** The id as pages know it. */
  outside(id: number): string
  /** Puts those ids into the text of a response. */
  write(text: string): string
  /** Puts the sandbox's own ids into the text of a request. */
  read(text: string): string
}

/** They are written as the sandbox counts. */
export const PLAIN_IDS: ContractIds = { outside: String, write: (text) => text, read: (text) => text }

/** They are integers beyond 2^53, of which only the text has all digits. */
export const BIG_IDS: ContractIds = {
  outside: (id) => String(BigInt(id) + BEYOND),
  write: (text) => text.replace(NAMED, (_all, name: string, id: string) => `${name}${BigInt(id) + BEYOND}`),
  read: (text) => text.replace(ASKED, (_all, name: string, id: string) => `${name}${BigInt(id) - BEYOND}`),
}
