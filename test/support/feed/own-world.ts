import { pino } from 'pino'
import type { Test } from 'tap'
import type { WebSocket } from 'ws'
import { OwnSocket } from '../../../src/sockets/feed/browser/own-socket.ts'
import type { WaitingBytes } from '../../../src/sockets/waiting-bytes.ts'
import { ScriptedUpstream } from '../upstream/scripted-upstream.ts'
import { memberHost, startMember, type MemberWorld } from './started-member.ts'

/** More than fits into the buffers of the kernel. */
export const LARGE = 32_000_000

/** A browser whose messages all go to its own socket. */
export interface OwnWorld extends MemberWorld {
  /** Has upstream open the own socket. @returns upstream's end of it */
  readonly open: () => Promise<WebSocket>
}

/**
 * Starts one with a MAX_BUFFERED_BYTES of 200,000. Upstream opens the own socket when it is told.
 * @param waiting where the own socket notes what waits for upstream
 */
export async function ownWorld(t: Test, waiting?: WaitingBytes): Promise<OwnWorld> {
  const upstream = await ScriptedUpstream.start(t, 2 * LARGE)
  const host = memberHost()
  const limits = { ...host.limits, maxBufferedBytes: 200_000 }
  const world = await startMember(t, { ...host, limits }, ({ own }, message, isBinary) => own?.send(message, isBinary))
  const { member } = world
  const handshake = new Promise<() => void>((resolve) => {
    upstream.onUpgrade = (...args) => resolve(() => upstream.accept(...args))
  })
  member.own = new OwnSocket(member, {
    url: `ws://${upstream.host}/`,
    maxMessageBytes: 2 * LARGE,
    maxBufferedBytes: limits.maxBufferedBytes,
    waiting,
    log: pino({ level: 'silent' }),
    traffic: { messages: 0, bytes: 0 },
    onEnd: () => undefined,
  })
  const open = async (): Promise<WebSocket> => {
    const accept = await handshake
    accept()
    return upstream.socket()
  }
  return { ...world, open }
}
