import * as fc from 'fast-check'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { Envelope } from '../../src/sessions/envelope.ts'

const [OLD, NEW] = ['an-old-secret-of-thirty-two-bytes-at-least', 'a-new-secret-of-thirty-two-bytes-at-least']

const envelopeOf = (secrets: readonly string[]): Envelope => new Envelope(new Changeable(secrets))

await test('a sealed text opens for its key and holder only', async (t) => {
  const envelope = envelopeOf([NEW])
  fc.assert(
    fc.property(fc.string(), fc.string({ minLength: 1 }), fc.string({ unit: 'binary' }), (key, holder, text) => {
      // A lone surrogate has no UTF-8 form. The server seals no such text.
      const plain = text.toWellFormed()
      const sealed = envelope.seal(key, holder, plain)
      return (
        envelope.open(key, holder, sealed) === plain &&
        envelope.open(`${key}x`, holder, sealed) === undefined &&
        envelope.open(key, `${holder}x`, sealed) === undefined
      )
    }),
    { numRuns: 50 },
  )
  t.pass('50 generated texts')
})

await test('the same text is sealed to different bytes each time, none of which show the text', async (t) => {
  const envelope = envelopeOf([NEW])
  const [one, two] = [envelope.seal('k', 'h', 'secret token'), envelope.seal('k', 'h', 'secret token')]
  t.not(one, two)
  t.notMatch(Buffer.from(one.split('.')[2] ?? '', 'base64url').toString('latin1'), /secret/)
})

await test('the first secret seals, the others still open, and a removed one does not', async (t) => {
  const sealedOld = envelopeOf([OLD]).seal('k', 'h', 'text')
  const appended = envelopeOf([OLD, NEW])
  const moved = envelopeOf([NEW, OLD])
  t.equal(moved.open('k', 'h', sealedOld), 'text')
  t.equal(
    appended.open('k', 'h', moved.seal('k', 'h', 'text')),
    'text',
    'between the two rolls both understand each other',
  )
  t.equal(envelopeOf([NEW]).open('k', 'h', sealedOld), undefined)
})

await test('a damaged or foreign value opens to undefined, without an error', async (t) => {
  const envelope = envelopeOf([NEW])
  const sealed = envelope.seal('k', 'h', 'text')
  // Without the last character, some of whose bits are unused.
  for (const at of [0, 5, 15, 30, sealed.length - 2]) {
    const flipped = sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1)
    t.equal(envelope.open('k', 'h', flipped), undefined, `byte ${at}`)
  }
  fc.assert(fc.property(fc.string(), (text) => envelope.open('k', 'h', text) === undefined))
  t.equal(envelope.open('k', 'h', sealed.replace('v1', 'v2')), undefined, 'another version')
  t.equal(envelope.open('k', 'h', sealed.slice(0, 20)), undefined, 'cut short')
})

await test('sealed bytes open for their key and holder only, with the secrets that seal texts, and are no text', async (t) => {
  const [old, moved] = [envelopeOf([OLD]), envelopeOf([NEW, OLD])]
  fc.assert(
    fc.property(fc.string(), fc.string({ minLength: 1 }), fc.uint8Array(), (key, holder, array) => {
      const bytes = Buffer.from(array)
      const sealed = old.sealBytes(key, holder, bytes)
      return (
        moved.openBytes(key, holder, sealed)?.equals(bytes) === true &&
        old.openBytes(`${key}x`, holder, sealed) === undefined &&
        old.openBytes(key, `${holder}x`, sealed) === undefined &&
        envelopeOf([NEW]).openBytes(key, holder, sealed) === undefined &&
        sealed.length === bytes.length + 29
      )
    }),
    { numRuns: 50 },
  )
  const sealed = moved.sealBytes('k', 'h', Buffer.from('text'))
  t.equal(moved.open('k', 'h', sealed), undefined)
  t.equal(moved.openBytes('k', 'h', moved.seal('k', 'h', 'text')), undefined)
  for (const at of sealed.split('').keys()) {
    const flipped = sealed.slice(0, at) + String.fromCodePoint(sealed.charCodeAt(at) ^ 1) + sealed.slice(at + 1)
    t.equal(moved.openBytes('k', 'h', flipped), undefined, `byte ${at}`)
    t.equal(moved.openBytes('k', 'h', sealed.slice(0, at)), undefined, `cut at ${at}`)
  }
})

await test('what an earlier version has sealed can be opened', (t) => {
  const envelope = envelopeOf([NEW, OLD])
  t.equal(envelope.open('k', 'h', 'v1.kQ2r1V15.wfF-Is97EHzIvPXqL5iNbDI5sDaDYfMn9oVO1l-aPuY'), 'text')
  const bytes = Buffer.from('AnVMORs7CCkoBYmfnvrvydhLuSqrdpKZOrJT72RGQj6u', 'base64').toString('latin1')
  t.equal(envelope.openBytes('k', 'h', bytes)?.toString(), 'text')
  t.end()
})

await test('a text is current if the first secret has sealed it, and without a secret there is no envelope', (t) => {
  const sealed = envelopeOf([OLD]).seal('k', 'h', 'text')
  t.equal(envelopeOf([OLD, NEW]).isCurrent(sealed), true)
  t.equal(envelopeOf([NEW, OLD]).isCurrent(sealed), false)
  t.equal(envelopeOf([OLD]).isCurrent(sealed.replace('v1', 'v2')), false)
  t.throws(() => envelopeOf([]), { message: 'an envelope needs a secret' })
  t.end()
})

await test('many texts that are sealed at once are sealed with bytes of their own, and all of them open', (t) => {
  const envelope = envelopeOf([NEW])
  const sealed = Array.from({ length: 600 }, () => envelope.seal('k', 'h', 'text'))
  t.equal(new Set(sealed.map((text) => text.split('.')[2]?.slice(0, 16))).size, 600)
  t.ok(sealed.every((text) => envelope.open('k', 'h', text) === 'text'))
  t.end()
})
