import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { Member } from '../../../src/sockets/feed/browser/member.ts'
import type { MemberHost } from '../../../src/sockets/feed/browser/outbox.ts'
import { WriteBatch } from '../../../src/sockets/feed/wire/write-batch.ts'
import { nextEvent } from '../time/until.ts'

/** A member without a feed, and its browser. */
export interface MemberWorld {
  readonly member: Member
  /** This server's end of the browser's socket. */
  readonly socket: WebSocket
  /** The connection of that. */
  readonly wire: Socket
  readonly browser: WebSocket
  /** The messages that the host has taken. */
  readonly taken: readonly string[]
  readonly host: MemberHost
}

/** A host whose limits are out of reach, but for that of conflation. */
export function memberHost(): MemberHost {
  return {
    limits: { maxBufferedBytes: 2 ** 30, conflateBytes: 65_536, slowConsumerMs: 60_000, requestsPerMinute: 60 },
    batch: new WriteBatch(),
    traffic: { messages: 0, bytes: 0 },
    conflated: { messages: 0 },
  }
}

/** Starts a member. @param host shared by the members of one feed @param onMessage called for each message, once it is noted */
export async function startMember(
  t: Test,
  host = memberHost(),
  onMessage?: (member: Member, message: Buffer, isBinary: boolean) => void,
): Promise<MemberWorld> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.teardown(() => server.close())
  await once(server, 'listening')
  const browser = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const [socket, { socket: wire }] = (await nextEvent(server, 'connection')) as [WebSocket, IncomingMessage]
  t.teardown(() => browser.terminate())
  const taken: string[] = []
  const member: Member = new Member({ socket, wire }, '127.0.0.1', host, {
    message: (message, isBinary) => {
      taken.push(message.toString())
      onMessage?.(member, message, isBinary)
    },
    end: () => taken.push('left'),
  })
  await nextEvent(browser, 'open')
  return { member, socket, wire, browser, taken, host }
}

/** From now on so many bytes wait to be sent on a connection, whatever is written to it. @returns how to change that */
export function waitingOn(wire: Socket, bytes: number): (bytes: number) => void {
  let waiting = bytes
  Object.defineProperty(wire, 'writableLength', { configurable: true, get: () => waiting })
  return (bytes) => void (waiting = bytes)
}
