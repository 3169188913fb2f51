import type { IncomingMessage } from 'node:http'

/** HTTP Version Not Supported (RFC 9110 §15.6.6). */
export const WRONG_VERSION = 505

/** Whether a request line names HTTP/1.1 or HTTP/1.0. Node also hands over lines with HTTP/2.0, HTTP/0.9 or no version. */
export function isHttp1({ httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' || httpVersion === '1.0'
}
