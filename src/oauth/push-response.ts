import { readProviderResponse, UnusableResponse, type RawResponse } from './provider-response.ts'

/** It becomes part of an address that the browser must be able to load. */
const REQUEST_URI = /^[\x21-\x7e]{1,1024}$/
/** The response names its lifetime, but nothing here depends on it: the browser is redirected at once. */
const ANY_LIFETIME_SECONDS = 60

/**
 * Reads the response to a pushed authorization request (RFC 9126 §2.2) and normalizes it for openid-client.
 * @throws UnusableResponse as {@link readProviderResponse}, and if there is no usable `request_uri`
 */
export async function readPushResponse(response: RawResponse): Promise<Response> {
  const read = await readProviderResponse(response)
  if (read.is === 'refusal') return read.refusal
  const requestUri = read.body?.['request_uri']
  if (typeof requestUri !== 'string' || !REQUEST_URI.test(requestUri)) {
    throw new UnusableResponse(`status ${read.status}, no usable request_uri`, read.status)
  }
  return Response.json({ request_uri: requestUri, expires_in: ANY_LIFETIME_SECONDS }, { status: 201 })
}
